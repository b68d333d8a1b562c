"""Django: its own applications' migrations and one's of ours, altered by a second migration; the ORM; transactions and locks.

Does not know which server it talks to: all of it holds for PostgreSQL itself.
"""

import datetime
import decimal
import io
import urllib.parse
import uuid

import django
from django.conf import settings

from checking import URL, equal, fails, make

url = urllib.parse.urlsplit(URL)
settings.configure(
    SECRET_KEY="of a test",
    USE_TZ=True,
    TIME_ZONE="UTC",
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
        "shop.apps.Shop",
    ],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": url.path[1:],
            "USER": url.username,
            "PASSWORD": url.password,
            "HOST": url.hostname,
            "PORT": url.port,
        }
    },
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
)
django.setup()

from django.contrib.admin.models import ADDITION, LogEntry  # noqa: E402
from django.contrib.auth.models import Group, Permission, User  # noqa: E402
from django.contrib.contenttypes.models import ContentType  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import DataError, IntegrityError, ProgrammingError, connection, transaction  # noqa: E402
from django.db.models import (
    Avg,
    Case,
    Count,
    Exists,
    F,
    Max,
    OuterRef,
    Q,
    Subquery,
    Sum,
    Value,
    When,
    Window,
)  # noqa: E402
from django.db.models.functions import Coalesce, Concat, Lower, RowNumber, TruncMonth, Upper  # noqa: E402

from shop.models import ADDRESSES, Category, Kinds, Product, Tag  # noqa: E402

ROW = {
    "small": -7,
    "big": 2**62,
    "positive": 7,
    "ratio": 0.1,
    "price": decimal.Decimal("12345.6700"),
    "ok": False,
    "name": "naïve 🐘 'q' \\ %",
    "data": bytes(range(256)),
    "day": datetime.date(2024, 2, 29),
    "clock": datetime.time(23, 59, 59, 250000),
    "at": datetime.datetime(2024, 2, 29, 23, 59, 59, 123456, datetime.timezone.utc),
    "span": datetime.timedelta(days=1, hours=2, seconds=3.5),
    "doc": {"a": [1, None, "é"], "b": {"c": True}},
    "uid": uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "address": "192.168.0.1",
    "email": "a@example.com",
    "url": "https://example.com/",
}

if not ADDRESSES:
    del ROW["address"]


def migrate(*arguments):
    output = io.StringIO()
    call_command("migrate", *arguments, stdout=output, no_color=True)
    return output.getvalue()


def table(name):
    """The columns of a table, as `manage.py inspectdb` would show them."""
    output = io.StringIO()
    call_command("inspectdb", name, stdout=output)
    return output.getvalue()


def check_migrate_own_applications():
    for application in ("contenttypes", "auth", "admin", "sessions"):
        assert " OK" in migrate(application), application
    equal(
        {"auth_user", "django_session", "django_admin_log", "django_content_type"}
        - set(connection.introspection.table_names()),
        set(),
    )


def check_first_migration():
    assert "Applying shop.0001_initial... OK" in migrate("shop", "0001")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO shop_product (title, sku, price, stock) VALUES ('old', 7, 1.5, 2)")


def check_second_migration():
    assert "Applying shop.0002" in migrate("shop")
    product = Product.objects.select_related("category").get()
    # What was a number is text now, what was missing has its default, and the category came from the migration's own code.
    equal(
        (product.sku, product.price, product.description, product.category.name),
        ("7", decimal.Decimal("1.50"), "", "none"),
    )
    product.delete()


def check_nothing_left():
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
    assert "No migrations to apply" in migrate()
    # Signals after the migrations made what the admin needs.
    equal(Permission.objects.filter(codename="add_product").count(), 1)
    equal(ContentType.objects.get_for_model(Product).model, "product")


def check_introspection():
    text = table("shop_product")
    for expected in (
        "max_digits=10, decimal_places=2",
        "unique=True, max_length=60",
        "models.ForeignKey('ShopCategory'",
    ):
        assert expected in text, text
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, "shop_product")
    assert constraints["shop_price_not_negative"]["check"]
    equal(constraints["shop_one_title_a_category"]["columns"], ["category_id", "title"])
    equal(constraints["shop_dearest"]["orders"], ["DESC", "ASC"])


def check_types():
    given = Kinds.objects.create(**ROW)
    found = Kinds.objects.get(pk=given.pk)
    found.data = bytes(found.data)
    equal({name: getattr(found, name) for name in ROW}, ROW)
    empty = Kinds.objects.get(pk=Kinds.objects.create().pk)
    equal({name: getattr(empty, name) for name in ROW}, dict.fromkeys(ROW))
    for name, value in ROW.items():
        equal(Kinds.objects.filter(**{name: value}).count(), 1, name)
    equal(Kinds.objects.filter(doc__b__c=True, doc__has_key="a").count(), 1)
    equal(
        Kinds.objects.filter(doc__a__0=1, at__year=2024, day__month=2, at__date=ROW["day"], clock__hour=23).count(), 1
    )
    equal(
        list(Kinds.objects.exclude(at=None).annotate(month=TruncMonth("at")).values_list("month", flat=True))[0].day, 1
    )


def check_bulk():
    Category.objects.bulk_create([Category(name=f"category {number}") for number in range(3)])
    categories = list(Category.objects.filter(name__startswith="category").order_by("name"))
    made = Product.objects.bulk_create(
        [
            Product(
                category=categories[number % 3],
                sku=f"sku {number}",
                title=f"title {number}",
                price=number,
                stock=number + 1,
            )
            for number in range(300)
        ],
        batch_size=120,
    )
    equal(len({product.pk for product in made}), 300)
    for product in made[:50]:
        product.price += decimal.Decimal("0.25")
    equal(Product.objects.bulk_update(made[:50], ["price"]), 50)
    equal(Product.objects.get(sku="sku 3").price, decimal.Decimal("3.25"))
    again = [Product(category=categories[0], sku="sku 0", title="title 0", price=77, stock=1)]
    Product.objects.bulk_create(again, ignore_conflicts=True)
    Product.objects.bulk_create(again, update_conflicts=True, unique_fields=["sku"], update_fields=["price"])
    equal(Product.objects.get(sku="sku 0").price, decimal.Decimal("77.00"))
    equal(Product.objects.filter(price__gte=200).update(price=F("price") + 1, stock=F("stock") * 2), 100)
    equal(Product.objects.filter(stock__gt=500).delete()[0], 50)


def check_queries():
    totals = (
        Category.objects.annotate(count=Count("products"), dearest=Max("products__price"))
        .filter(count__gt=0)
        .order_by("name")
    )
    expected = [("category 0", 84, "250.00"), ("category 1", 83, "248.00"), ("category 2", 83, "249.00")]
    equal([(each.name, each.count, str(each.dearest)) for each in totals], expected)
    summed = Product.objects.aggregate(Sum("stock"), Avg("stock"), dear=Count("pk", filter=Q(price__gt=100)))
    equal(
        summed["stock__sum"],
        sum(number + 1 for number in range(200)) + sum(2 * (number + 1) for number in range(200, 250)),
    )
    equal(summed["dear"], 149)
    poetry = Tag.objects.create(word="poetry")
    first, second = Product.objects.order_by("pk")[:2]
    first.tags.add(poetry)
    first.tags.add(poetry)
    equal(list(Product.objects.filter(tags__word="poetry").prefetch_related("tags")), [first])
    equal(Product.objects.filter(Exists(Tag.objects.filter(product=OuterRef("pk")))).get(), first)
    latest = Product.objects.filter(category=OuterRef("pk")).order_by("-pk").values("title")[:1]
    named = Category.objects.filter(name="category 0").annotate(
        latest=Subquery(latest), loud=Upper(Concat("name", Value("!")))
    )
    equal(list(named.values_list("latest", "loud")), [("title 249", "CATEGORY 0!")])
    ranked = Product.objects.annotate(rank=Window(RowNumber(), partition_by=F("category"), order_by=F("price").desc()))
    equal(ranked.filter(rank=1).count(), 3)
    kind = Case(When(price__lt=10, then=Value("cheap")), default=Value("dear"))
    counted = Product.objects.values(kind=kind).annotate(count=Count("*")).order_by("kind")
    equal(list(counted), [{"kind": "cheap", "count": 9}, {"kind": "dear", "count": 241}])
    equal(
        Product.objects.filter(title__icontains="TITLE 1", sku__regex=r"^sku 1\d$", title__iexact="TITLE 12").count(), 1
    )
    equal(Product.objects.filter(Q(pk__in=[first.pk, second.pk]) | Q(owner__isnull=False)).distinct().count(), 2)
    joined = Product.objects.order_by("pk").values_list("title").union(Category.objects.values_list("name"))
    equal(joined.count(), 254)
    lowered = Product.objects.annotate(lowered=Lower(Coalesce("owner__username", Value("NOBODY")))).first()
    equal(lowered.lowered, "nobody")
    equal([product.sku for product in Product.objects.order_by("price", "pk").iterator(chunk_size=100)][0], "sku 1")
    made, created = Tag.objects.get_or_create(word="prose")
    equal((Tag.objects.update_or_create(word="prose", defaults={"word": "prose-2"})[1], created), (False, True))
    assert Product.objects.filter(sku="sku 1").exists() and not Product.objects.filter(sku="missing").exists()


def check_errors():
    category = Category.objects.first()

    def create(**changes):
        values = {"category": category, "sku": "another", "title": "another", "price": 1, "stock": 1}
        with transaction.atomic():
            return Product.objects.create(**{**values, **changes})

    def state(kind, code, work):
        equal(fails(kind, work).__cause__.sqlstate, code)

    state(IntegrityError, "23505", lambda: create(sku="sku 1"))
    state(IntegrityError, "23514", lambda: create(price=-1))
    state(IntegrityError, "23514", lambda: create(stock=-1))
    state(IntegrityError, "23502", lambda: create(title=None))
    state(DataError, "22001", lambda: create(title="x" * 201))
    state(DataError, "22003", lambda: create(price=10**9))
    state(ProgrammingError, "42P01", lambda: Product.objects.raw("SELECT * FROM missing")[0])

    # Django's foreign keys are deferred to the commit.
    def orphan():
        with transaction.atomic():
            Product.objects.create(category_id=10**6, sku="orphan", title="orphan", price=1)

    state(IntegrityError, "23503", orphan)
    equal(Product.objects.filter(sku__in=["another", "orphan"]).count(), 0)


def check_transactions():
    before = Tag.objects.count()
    with transaction.atomic():
        Tag.objects.create(word="kept")
        try:
            with transaction.atomic():
                Tag.objects.create(word="undone")
                Tag.objects.create(word="kept")
        except IntegrityError:
            pass
        place = transaction.savepoint()
        Tag.objects.create(word="undone-too")
        transaction.savepoint_rollback(place)
        equal(Tag.objects.count(), before + 1)
    try:
        with transaction.atomic():
            Tag.objects.all().delete()
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    equal(Tag.objects.count(), before + 1)
    done = []
    with transaction.atomic():
        transaction.on_commit(lambda: done.append("committed"))
    equal(done, ["committed"])


def check_select_for_update():
    with transaction.atomic():
        locked = Product.objects.select_for_update().get(sku="sku 1")
        locked.stock = F("stock") - 1
        locked.save()
        equal(
            Product.objects.select_for_update(nowait=True, of=("self",))
            .select_related("category")
            .get(sku="sku 1")
            .stock,
            1,
        )
        equal(Product.objects.select_for_update(skip_locked=True).filter(sku__in=["sku 1", "sku 2"]).count(), 2)


def check_contributed_applications():
    user = User.objects.create_user("ann", "ann@example.com", "secret")
    group = Group.objects.create(name="staff")
    group.permissions.add(Permission.objects.get(codename="add_product"))
    user.groups.add(group)
    assert User.objects.get(username="ann").has_perm("shop.add_product")
    store = SessionStore()
    store["cart"] = [1, 2]
    store.create()
    equal(SessionStore(store.session_key)["cart"], [1, 2])
    store.flush()
    LogEntry.objects.log_actions(user.pk, Product.objects.filter(sku="sku 1"), ADDITION, single_object=True)
    equal(LogEntry.objects.get().action_flag, ADDITION)
    Product.objects.filter(sku="sku 1").update(owner=user)
    user.delete()
    equal(Product.objects.get(sku="sku 1").owner, None)


def check_back_and_away():
    Product.objects.all().delete()
    assert "Unapplying shop.0002" in migrate("shop", "0001")
    assert "Unapplying shop.0001_initial... OK" in migrate("shop", "zero")
    assert "shop_product" not in connection.introspection.table_names()
    assert "OK" in migrate("shop")
    call_command("flush", interactive=False, verbosity=0)
    equal(User.objects.count(), 0)


make(
    check_migrate_own_applications,
    check_first_migration,
    check_second_migration,
    check_nothing_left,
    check_introspection,
    check_types,
    check_bulk,
    check_queries,
    check_errors,
    check_transactions,
    check_select_for_update,
    check_contributed_applications,
    check_back_and_away,
)
