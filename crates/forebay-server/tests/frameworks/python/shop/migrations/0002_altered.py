"""Columns renamed, retyped, made required; foreign keys, unique and check constraints, indexes; rows filled in between."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def give_every_product_a_category(apps, editor):
    """What a project's own data migration does."""
    category = apps.get_model("shop", "Category").objects.create(name="none")
    apps.get_model("shop", "Product").objects.filter(category=None).update(category=category)


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        migrations.RenameModel("Kind", "Kinds"),
        migrations.RenameField("Kinds", "link", "url"),
        migrations.AddField(
            "Category",
            "parent",
            models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to="shop.category"),
        ),
        migrations.AlterField("Category", "name", models.CharField(max_length=40, unique=True)),
        migrations.AddField(
            "Product",
            "category",
            models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="products", to="shop.category"
            ),
        ),
        migrations.AddField(
            "Product",
            "owner",
            models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField("Product", "tags", models.ManyToManyField(blank=True, to="shop.tag")),
        migrations.AddField("Product", "description", models.TextField(default="")),
        migrations.RemoveField("Product", "note"),
        migrations.AlterField("Product", "title", models.CharField(db_index=True, max_length=200)),
        migrations.AlterField("Product", "sku", models.CharField(max_length=60, unique=True)),
        migrations.AlterField("Product", "price", models.DecimalField(decimal_places=2, default=0, max_digits=10)),
        migrations.AlterField("Product", "price", models.DecimalField(decimal_places=2, max_digits=10)),
        migrations.AlterField("Product", "stock", models.PositiveIntegerField(default=0)),
        migrations.AddIndex("Product", models.Index(fields=["-price", "title"], name="shop_dearest")),
        migrations.AddConstraint(
            "Product", models.CheckConstraint(condition=models.Q(("price__gte", 0)), name="shop_price_not_negative")
        ),
        migrations.AddConstraint(
            "Product", models.UniqueConstraint(fields=("category", "title"), name="shop_one_title_a_category")
        ),
        migrations.AddConstraint(
            "Product",
            models.UniqueConstraint(
                condition=models.Q(("stock", 0)), fields=("owner",), name="shop_one_empty_an_owner"
            ),
        ),
        migrations.RunPython(give_every_product_a_category, migrations.RunPython.noop),
        migrations.AlterField(
            "Product",
            "category",
            models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="products", to="shop.category"),
        ),
    ]
