import jakarta.persistence.CascadeType;
import jakarta.persistence.CheckConstraint;
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.LockModeType;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import jakarta.persistence.UniqueConstraint;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.function.Function;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.ColumnDefault;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.cfg.Configuration;
import org.hibernate.exception.ConstraintViolationException;
import org.hibernate.exception.DataException;
import org.hibernate.exception.SQLGrammarException;
import org.hibernate.type.SqlTypes;

/**
 * Hibernate: its schema update twice and after a change, identity and sequences, entities, queries, transactions.
 *
 * <p>Does not know which server it talks to: all of it holds for PostgreSQL itself.
 */
public final class WithHibernate {

    enum Colour {
        RED,
        GREEN,
    }

    @Entity(name = "Author")
    @Table(name = "authors")
    public static class Author {

        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "authors")
        @SequenceGenerator(name = "authors", sequenceName = "authors_seq", allocationSize = 20)
        Long id;

        @Column(length = 50, nullable = false, unique = true)
        String name;

        LocalDate born;

        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true)
        @OrderBy("title")
        List<Book> books = new ArrayList<>();
    }

    @Entity(name = "Book")
    @Table(
        name = "books",
        uniqueConstraints = @UniqueConstraint(name = "one_title_an_author", columnNames = { "author_id", "title" }),
        indexes = @Index(name = "books_price", columnList = "price desc, title"),
        check = @CheckConstraint(name = "price_not_negative", constraint = "price >= 0")
    )
    public static class Book {

        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;

        @ManyToOne(optional = false)
        @JoinColumn(name = "author_id")
        Author author;

        @Column(nullable = false)
        String title;

        @Column(precision = 10, scale = 2)
        BigDecimal price;

        @Version
        int version;

        @ManyToMany(cascade = CascadeType.PERSIST)
        List<Tag> tags = new ArrayList<>();

        static Book of(Author author, String title, String price) {
            var book = new Book();
            book.author = author;
            book.title = title;
            book.price = new BigDecimal(price);
            author.books.add(book);
            return book;
        }
    }

    @Entity(name = "Tag")
    @Table(name = "tags")
    public static class Tag {

        @Id
        @GeneratedValue
        UUID id;

        @Column(length = 20, unique = true)
        String word;

        static Tag of(String word) {
            var tag = new Tag();
            tag.word = word;
            return tag;
        }
    }

    @Entity(name = "Kinds")
    @Table(name = "kinds")
    public static class Kinds {

        @Id
        @GeneratedValue
        Integer id;

        Short small;
        Long big;

        @Column(precision = 12, scale = 4)
        BigDecimal price;

        Double ratio;
        Float part;
        Boolean ok;

        @Column(length = 40)
        String name;

        @Column(columnDefinition = "text")
        String note;

        byte[] data;
        LocalDate day;
        LocalTime clock;
        LocalDateTime local;
        Instant at;
        UUID uid;

        @Enumerated(EnumType.STRING)
        Colour colour;

        @JdbcTypeCode(SqlTypes.JSON)
        Map<String, String> doc;
    }

    /** What Author became. */
    @Entity(name = "Author")
    @Table(name = "authors", indexes = @Index(name = "authors_nick", columnList = "nick"))
    public static class ChangedAuthor {

        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "authors")
        @SequenceGenerator(name = "authors", sequenceName = "authors_seq", allocationSize = 20)
        Long id;

        @Column(length = 50, nullable = false, unique = true)
        String name;

        LocalDate born;

        @Column(length = 30)
        @ColumnDefault("'none'")
        String nick;

        @ManyToOne
        ChangedAuthor teacher;
    }

    private static String url;
    private static SessionFactory sessions;

    public static void main(String[] arguments) {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        url = Checking.url(arguments[0], "");
        new Checking()
            .check("update", () -> {
                sessions = open("update", Author.class, Book.class, Tag.class, Kinds.class);
                Checking.equal(
                    told(session -> session.createQuery("select count(*) from Book", Long.class).getSingleResult()),
                    0L
                );
            })
            .check("update_again", () -> {
                sessions.close();
                sessions = open("update", Author.class, Book.class, Tag.class, Kinds.class);
            })
            .check("validate", () -> {
                sessions.close();
                sessions = open("validate", Author.class, Book.class, Tag.class, Kinds.class);
            })
            .check("types", WithHibernate::types)
            .check("sequences", WithHibernate::sequences)
            .check("entities", WithHibernate::entities)
            .check("queries", WithHibernate::queries)
            .check("errors", WithHibernate::errors)
            .check("transactions", WithHibernate::transactions)
            .check("update_after_a_change", WithHibernate::updateAfterAChange)
            .check("create_drop", () -> open("create-drop", Author.class, Book.class, Tag.class, Kinds.class).close())
            .make();
    }

    /** A factory of sessions; what is to be done to the schema is done when it is made. */
    private static SessionFactory open(String schema, Class<?>... entities) {
        var configuration = new Configuration();
        configuration.setProperty("hibernate.connection.url", url);
        configuration.setProperty("hibernate.hbm2ddl.auto", schema);
        configuration.setProperty("hibernate.hbm2ddl.halt_on_error", !schema.equals("create-drop"));
        configuration.setProperty("hibernate.jdbc.batch_size", 20);
        configuration.setProperty("hibernate.jdbc.time_zone", "UTC");
        configuration.setProperty("hibernate.type.json_format_mapper", Json.class.getName());
        for (var entity : entities) {
            configuration.addAnnotatedClass(entity);
        }
        return configuration.buildSessionFactory();
    }

    private static <T> T told(Function<Session, T> work) {
        return sessions.fromTransaction(work);
    }

    private static void done(Consumer<Session> work) {
        sessions.inTransaction(work);
    }

    private static void types() {
        var full = new Kinds();
        full.small = -7;
        full.big = 1L << 62;
        full.price = new BigDecimal("12345.6700");
        full.ratio = 0.1;
        full.part = 0.5f;
        full.ok = false;
        full.name = "naïve 🐘 'q' \\ ?";
        full.note = "";
        full.data = new byte[256];
        for (int at = 0; at < full.data.length; at++) {
            full.data[at] = (byte) at;
        }
        full.day = LocalDate.of(2024, 2, 29);
        full.clock = LocalTime.of(23, 59, 59);
        full.local = LocalDateTime.of(2024, 2, 29, 12, 0, 0, 1000);
        full.at = Instant.parse("2024-02-29T23:59:59.123456Z");
        full.uid = UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
        full.colour = Colour.GREEN;
        full.doc = Map.of("a", "é");
        done(session -> session.persist(full));
        done(session -> session.persist(new Kinds()));
        var found = told(session -> session.find(Kinds.class, full.id));
        Checking.equal(
            List.of(
                found.small,
                found.big,
                found.price,
                found.ratio,
                found.part,
                found.ok,
                found.name,
                found.note,
                found.day,
                found.clock,
                found.local,
                found.at,
                found.uid,
                found.colour,
                found.doc
            ),
            List.of(
                full.small,
                full.big,
                full.price,
                full.ratio,
                full.part,
                full.ok,
                full.name,
                full.note,
                full.day,
                full.clock,
                full.local,
                full.at,
                full.uid,
                full.colour,
                full.doc
            )
        );
        Checking.equal(found.data, full.data);
        for (var field : List.of(
            "small",
            "big",
            "price",
            "ratio",
            "ok",
            "name",
            "day",
            "clock",
            "local",
            "at",
            "uid",
            "colour"
        )) {
            var counted = told(session -> {
                try {
                    var value = Kinds.class.getDeclaredField(field).get(full);
                    return session
                        .createQuery("select count(*) from Kinds where " + field + " = :value", Long.class)
                        .setParameter("value", value)
                        .getSingleResult();
                } catch (ReflectiveOperationException impossible) {
                    throw new AssertionError(impossible);
                }
            });
            Checking.equal(field + counted, field + 1);
        }
        Checking.equal(
            told(session -> session.createQuery("from Kinds where at is null", Kinds.class).getSingleResult().data),
            null
        );
    }

    private static void sequences() {
        // Ids come from the sequence in blocks of twenty, so 50 rows ask for it a few times.
        done(session -> {
            for (int number = 0; number < 50; number++) {
                var author = new Author();
                author.name = "author " + number;
                session.persist(author);
            }
        });
        var ids = told(session -> session.createQuery("select distinct id from Author order by id", Long.class).list());
        Checking.equal(ids.size(), 50);
        Checking.equal(ids.get(49) - ids.get(0), 49L);
        Checking.equal(told(session -> session.createMutationQuery("delete from Author").executeUpdate()), 50);
    }

    private static void entities() {
        var ann = new Author();
        ann.name = "Ann";
        ann.born = LocalDate.of(1950, 1, 2);
        Book.of(ann, "one", "1.50").tags.add(Tag.of("poetry"));
        Book.of(ann, "two", "2.50");
        done(session -> session.persist(ann));
        done(session -> {
            var found = session.find(Author.class, ann.id);
            Checking.equal(
                found.books
                    .stream()
                    .map(book -> book.title + " " + book.price)
                    .toList(),
                List.of("one 1.50", "two 2.50")
            );
            Checking.equal(found.books.get(0).tags.get(0).word, "poetry");
            found.books.get(0).title = "first";
            found.born = null;
        });
        Checking.equal(told(session -> session.find(Book.class, ann.books.get(0).id).version), 1);
        var ben = new Author();
        ben.name = "Ben";
        Book.of(ben, "of Ben", "9.99");
        done(session -> session.persist(ben));
        done(session -> session.find(Author.class, ben.id).books.clear());
        done(session -> session.remove(session.find(Author.class, ben.id)));
        var detached = told(session -> session.find(Author.class, ann.id));
        detached.name = "Anne";
        done(session -> session.merge(detached));
        Checking.equal(
            told(session -> session.createQuery("select name from Author", String.class).list()),
            List.of("Anne")
        );
        done(session -> session.find(Author.class, ann.id).name = "Ann");
    }

    private static void queries() {
        done(session -> {
            var sums = session
                .createQuery(
                    "select a.name, sum(b.price), count(b) from Author a join a.books b group by a.name having count(b) > 1",
                    Object[].class
                )
                .getSingleResult();
            Checking.equal(sums, new Object[] { "Ann", new BigDecimal("4.00"), 2L });
            var page = session
                .createQuery("from Book b join fetch b.author order by b.price desc", Book.class)
                .setFirstResult(1)
                .setMaxResults(1)
                .list();
            Checking.equal(
                page
                    .stream()
                    .map(book -> book.author.name)
                    .toList(),
                List.of("Ann")
            );
            var builder = session.getCriteriaBuilder();
            var query = builder.createQuery(Book.class);
            var book = query.from(Book.class);
            query.where(
                builder.and(
                    builder.like(builder.lower(book.get("title")), "t%"),
                    builder.ge(book.get("price"), new BigDecimal("2"))
                )
            );
            Checking.equal(session.createQuery(query).getSingleResult().title, "two");
            Checking.equal(
                session
                    .createQuery(
                        "select count(*) from Book where title in (:titles) and exists (select 1 from Author where name ilike 'ANN')",
                        Long.class
                    )
                    .setParameterList("titles", List.of("first", "two", "x"))
                    .getSingleResult(),
                2L
            );
            Checking.equal(
                session
                    .createQuery(
                        "select coalesce(born, current_date) = current_date, upper(name) || '!', length(name), extract(year from cast('2024-02-29' as LocalDate)) from Author",
                        Object[].class
                    )
                    .getSingleResult(),
                new Object[] { true, "ANN!", 3, 2024 }
            );
            Checking.equal(
                session
                    .createQuery(
                        "select title, row_number() over (order by price desc) from Book order by title",
                        Object[].class
                    )
                    .list()
                    .get(0),
                new Object[] { "first", 2L }
            );
            Checking.equal(
                session
                    .createNativeQuery("select title from books where price = :price", String.class)
                    .setParameter("price", new BigDecimal("2.50"))
                    .getSingleResult(),
                "two"
            );
            Checking.equal(
                session.createMutationQuery("update Book set price = price + 1 where title = 'two'").executeUpdate(),
                1
            );
            Checking.equal(
                session
                    .createQuery(
                        "select case when price > 3 then 'dear' else 'cheap' end from Book order by title",
                        String.class
                    )
                    .list(),
                List.of("cheap", "dear")
            );
        });
    }

    private static void errors() {
        var ann = told(session -> session.createQuery("from Author", Author.class).getSingleResult());
        var duplicate = Checking.fails("23505", ConstraintViolationException.class, () ->
            done(session -> {
                var again = new Author();
                again.name = "Ann";
                session.persist(again);
            })
        );
        Checking.equal(duplicate.getKind(), ConstraintViolationException.ConstraintKind.UNIQUE);
        var negative = Checking.fails("23514", ConstraintViolationException.class, () ->
            done(session -> {
                session.createMutationQuery("update Book set price = -1").executeUpdate();
            })
        );
        Checking.equal(negative.getConstraintName(), "price_not_negative");
        Checking.fails("23502", ConstraintViolationException.class, () ->
            done(session -> session.createNativeMutationQuery("insert into authors (id) values (1000)").executeUpdate())
        );
        Checking.fails("23503", ConstraintViolationException.class, () ->
            done(session -> session.createNativeMutationQuery("delete from authors").executeUpdate())
        );
        Checking.fails("22001", DataException.class, () ->
            done(session -> session.find(Author.class, ann.id).name = "x".repeat(51))
        );
        Checking.fails("42P01", SQLGrammarException.class, () ->
            done(session -> session.createNativeQuery("select * from missing", Object.class).list())
        );
    }

    private static void transactions() {
        try {
            done(session -> {
                session.persist(Tag.of("undone"));
                session.flush();
                throw new IllegalStateException("on purpose");
            });
        } catch (IllegalStateException expected) {
            Checking.equal(expected.getMessage(), "on purpose");
        }
        done(session -> {
            session.persist(Tag.of("kept"));
            var locked = session
                .createQuery("from Book where title = 'two'", Book.class)
                .setLockMode(LockModeType.PESSIMISTIC_WRITE)
                .getSingleResult();
            session.refresh(locked, LockModeType.PESSIMISTIC_READ);
            locked.price = BigDecimal.TEN;
        });
        Checking.equal(
            told(session ->
                session
                    .createQuery("select count(*) from Tag where word in ('kept', 'undone')", Long.class)
                    .getSingleResult()
            ),
            1L
        );
        // Two who change one row: the second is told that it was too late.
        try (var first = sessions.openSession()) {
            var own = first.createQuery("from Book where title = 'two'", Book.class).getSingleResult();
            done(session -> session.find(Book.class, own.id).price = BigDecimal.ONE);
            try {
                first.beginTransaction();
                own.price = BigDecimal.ZERO;
                first.getTransaction().commit();
                throw new AssertionError("the second change was not refused");
            } catch (jakarta.persistence.OptimisticLockException expected) {
                first.getTransaction().rollback();
            }
        }
    }

    private static void updateAfterAChange() {
        sessions.close();
        open("update", ChangedAuthor.class).close();
        sessions = open("update", ChangedAuthor.class);
        var ann = told(session ->
            session.createQuery("from Author where name = 'Ann'", ChangedAuthor.class).getSingleResult()
        );
        Checking.equal(ann.nick, "none");
        done(session -> session.find(ChangedAuthor.class, ann.id).teacher = session.find(ChangedAuthor.class, ann.id));
        Checking.equal(
            told(session -> session.createQuery("select teacher.name from Author", String.class).getSingleResult()),
            "Ann"
        );
        sessions.close();
    }
}
