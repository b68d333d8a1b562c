package main

import (
	"errors"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// Author and Book are the application's models.
type Author struct {
	gorm.Model
	Name  string     `gorm:"size:50;not null;uniqueIndex"`
	Born  *time.Time `gorm:"type:date"`
	Books []Book     `gorm:"constraint:OnDelete:CASCADE"`
}

type Book struct {
	ID       uint64 `gorm:"primaryKey"`
	AuthorID uint   `gorm:"not null;uniqueIndex:one_title_an_author"`
	Author   *Author
	Title    string  `gorm:"not null;uniqueIndex:one_title_an_author"`
	Price    float64 `gorm:"type:numeric(10,2);default:0;check:price_not_negative,price >= 0"`
	Sold     bool    `gorm:"default:false"`
	Tags     []Tag   `gorm:"many2many:book_tags"`
}

type Tag struct {
	ID   int64
	Word string `gorm:"unique;size:20"`
}

// ChangedAuthor is what Author became.
type ChangedAuthor struct {
	gorm.Model
	Name string     `gorm:"size:120;not null;uniqueIndex"`
	Nick string     `gorm:"default:none;index"`
	Born *time.Time `gorm:"type:date;comment:when"`
}

func (ChangedAuthor) TableName() string { return "authors" }

// Kind is a row of all kinds of values.
type Kind struct {
	ID    int32
	Small *int16
	Big   *int64
	Price *string `gorm:"type:decimal(12,4)"`
	Ratio *float64
	OK    *bool
	Name  *string `gorm:"size:40"`
	Note  *string
	Data  []byte
	At    *time.Time
	UID   *string `gorm:"type:uuid;default:gen_random_uuid()"`
	Doc   *string `gorm:"type:jsonb"`
}

func gormChecks(url string) []check {
	open := func() *gorm.DB {
		return value(gorm.Open(postgres.Open(url), &gorm.Config{Logger: logger.Discard, TranslateError: true}))
	}
	db := open()
	untranslated := value(gorm.Open(postgres.Open(url), &gorm.Config{Logger: logger.Discard}))
	count := func(of *gorm.DB) (count int64) {
		must(of.Count(&count).Error)
		return count
	}
	is := func(err, expected error) {
		if !errors.Is(err, expected) {
			panic(err)
		}
	}
	return []check{
		{"auto_migrate", func() {
			must(db.AutoMigrate(&Author{}, &Book{}, &Tag{}, &Kind{}))
			equal(db.Migrator().HasTable(&Book{}), true)
			equal(db.Migrator().HasConstraint(&Book{}, "price_not_negative"), true)
			equal(db.Migrator().HasIndex(&Book{}, "one_title_an_author"), true)
		}},
		{"auto_migrate_again", func() {
			must(db.AutoMigrate(&Author{}, &Book{}, &Tag{}, &Kind{}))
			equal(len(value(db.Migrator().GetTables())), 5)
		}},
		{"types", func() {
			full := Kind{
				Small: pointer(int16(-7)), Big: pointer(int64(1) << 62), Price: pointer("12345.6700"), Ratio: pointer(0.1), OK: pointer(false),
				Name: pointer("naïve 🐘 'q' \\ ?"), Note: pointer(""), Data: allBytes(), At: &moment,
				UID: pointer("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), Doc: pointer(`{"a": [1, null, "é"]}`),
			}
			must(db.Create(&full).Error)
			var found Kind
			must(db.First(&found, full.ID).Error)
			found.At = pointer(found.At.UTC())
			equal(found, full)
			var empty Kind
			must(db.Create(&empty).Error)
			equal(len(*empty.UID), 36)
			for name, wanted := range map[string]any{"small": full.Small, "price": full.Price, "ok": false, "at": moment, "uid": full.UID} {
				equal(count(db.Model(&Kind{}).Where(map[string]any{name: wanted})), int64(1))
			}
		}},
		{"crud", func() {
			ann := Author{Name: "Ann", Books: []Book{{Title: "one", Price: 1.5, Tags: []Tag{{Word: "poetry"}}}, {Title: "two", Price: 2.5}}}
			must(db.Create(&ann).Error)
			var found Author
			must(db.Preload("Books.Tags").Preload("Books", func(db *gorm.DB) *gorm.DB { return db.Order("title") }).First(&found, "name = ?", "Ann").Error)
			equal([]any{found.Books[0].Title, found.Books[1].Price, found.Books[0].Tags[0].Word}, []any{"one", 2.5, "poetry"})
			must(db.Model(&found.Books[0]).Updates(map[string]any{"title": "first", "price": gorm.Expr("price + ?", 1)}).Error)
			found.Born = pointer(time.Date(1950, 1, 2, 0, 0, 0, 0, time.UTC))
			must(db.Save(&found).Error)
			must(db.Joins("Author").Where("\"Author\".name = ?", "Ann").Order("title").First(&found.Books[0]).Error)
			equal([]any{found.Books[0].Title, found.Books[0].Price, found.Books[0].Author.Name}, []any{"first", 2.5, "Ann"})
			many := make([]Tag, 100)
			for at := range many {
				many[at].Word = "word " + string(rune('a'+at%26)) + string(rune('a'+at/26))
			}
			must(db.CreateInBatches(many, 40).Error)
			result := db.Where("word LIKE ?", "word a%").Delete(&Tag{})
			must(result.Error)
			equal(result.RowsAffected, int64(4))
			tag := Tag{Word: "poetry"}
			must(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "word"}}, DoUpdates: clause.AssignmentColumns([]string{"word"})}).Create(&tag).Error)
			equal(db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Tag{Word: "poetry"}).RowsAffected, int64(0))
			var ben Author
			must(db.Where(Author{Name: "Ben"}).FirstOrCreate(&ben).Error)
			must(db.Delete(&ben).Error)
			equal(count(db.Model(&Author{})), int64(1))
			equal(count(db.Unscoped().Model(&Author{})), int64(2))
			is(db.First(&Author{}, "name = ?", "Ben").Error, gorm.ErrRecordNotFound)
			var sums []struct {
				Name  string
				Total float64
			}
			must(db.Model(&Book{}).Select("authors.name, sum(books.price) AS total").Joins("JOIN authors ON authors.id = books.author_id").
				Group("authors.name").Having("count(*) > ?", 1).Scan(&sums).Error)
			equal(sums[0].Total, 5.0)
			var titles []string
			must(db.Model(&Book{}).Where("author_id IN (?)", db.Model(&Author{}).Select("id")).Order("title DESC").Limit(1).Offset(1).Pluck("title", &titles).Error)
			equal(titles, []string{"first"})
		}},
		{"errors", func() {
			var ann Author
			must(db.First(&ann).Error)
			is(db.Create(&Author{Name: "Ann"}).Error, gorm.ErrDuplicatedKey)
			is(db.Create(&Book{AuthorID: 100000, Title: "x"}).Error, gorm.ErrForeignKeyViolated)
			is(db.Create(&Book{AuthorID: ann.ID, Title: "x", Price: -1}).Error, gorm.ErrCheckConstraintViolated)
			fails("22001", untranslated.Create(&Tag{Word: "more than twenty letters"}).Error)
			fails("23502", untranslated.Exec("INSERT INTO authors (name) VALUES (?)", nil).Error)
			fails("42P01", untranslated.Exec("SELECT * FROM missing").Error)
		}},
		{"transactions", func() {
			undone := errors.New("on purpose")
			is(db.Transaction(func(tx *gorm.DB) error {
				must(tx.Create(&Tag{Word: "undone"}).Error)
				return undone
			}), undone)
			must(db.Transaction(func(tx *gorm.DB) error {
				must(tx.Create(&Tag{Word: "kept"}).Error)
				is(tx.Transaction(func(inner *gorm.DB) error { return inner.Create(&Tag{Word: "kept"}).Error }), gorm.ErrDuplicatedKey)
				var locked Tag
				return tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&locked, "word = ?", "kept").Error
			}))
			equal(count(db.Model(&Tag{}).Where("word IN ?", []string{"kept", "undone"})), int64(1))
		}},
		{"auto_migrate_a_change", func() {
			// As an application that starts anew: pgx keeps plans of the table as it was. Twice: then nothing is left to do.
			db := open()
			must(db.AutoMigrate(&ChangedAuthor{}))
			must(db.AutoMigrate(&ChangedAuthor{}))
			columns := value(db.Migrator().ColumnTypes(&ChangedAuthor{}))
			for _, column := range columns {
				if column.Name() == "name" {
					length, _ := column.Length()
					equal(length, int64(120))
				}
			}
			var ann ChangedAuthor
			must(db.First(&ann, "name = ?", "Ann").Error)
			equal(ann.Nick, "none")
		}},
		{"migrator", func() {
			must(db.Migrator().RenameColumn(&Kind{}, "note", "remark"))
			equal(db.Migrator().HasColumn(&Kind{}, "note"), false)
			must(db.Migrator().DropColumn(&Kind{}, "remark"))
			must(db.Migrator().DropIndex(&Author{}, "idx_authors_deleted_at"))
			must(db.Migrator().DropConstraint(&Book{}, "price_not_negative"))
			must(db.Migrator().RenameTable("kinds", "sorts"))
			must(db.Migrator().DropTable("sorts", "book_tags", &Tag{}, &Book{}, &Author{}))
			equal(len(value(db.Migrator().GetTables())), 0)
		}},
	}
}
