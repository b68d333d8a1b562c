module peers

go 1.25

require (
	github.com/graph-gophers/dataloader/v7 v7.1.0
	github.com/maypok86/otter/v2 v2.4.0
	github.com/theplant/cachex v0.0.0-20251210183652-8e675368cbc5
	github.com/viccon/sturdyc v1.1.5
	github.com/vikstrous/dataloadgen v0.0.10
	golang.org/x/sync v0.17.0
)

require (
	filippo.io/edwards25519 v1.1.0 // indirect
	github.com/allegro/bigcache/v3 v3.1.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgraph-io/ristretto/v2 v2.3.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-sql-driver/mysql v1.8.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/redis/go-redis/v9 v9.16.0 // indirect
	go.opentelemetry.io/otel v1.11.1 // indirect
	go.opentelemetry.io/otel/trace v1.11.1 // indirect
	golang.org/x/sys v0.35.0 // indirect
	golang.org/x/text v0.20.0 // indirect
	gorm.io/datatypes v1.2.7 // indirect
	gorm.io/driver/mysql v1.5.6 // indirect
	gorm.io/gorm v1.31.1 // indirect
)
