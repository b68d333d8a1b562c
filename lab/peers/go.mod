module peers

go 1.25
