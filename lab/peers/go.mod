module peers

go 1.25

require (
	github.com/graph-gophers/dataloader/v7 v7.1.0
	github.com/vikstrous/dataloadgen v0.0.10
)

require (
	go.opentelemetry.io/otel v1.11.1 // indirect
	go.opentelemetry.io/otel/trace v1.11.1 // indirect
)
