"""The models as they were at first."""

import uuid

from django.db import migrations, models

from shop.models import ADDRESSES


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Product",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField(max_length=50)),
                ("sku", models.IntegerField()),
                ("price", models.FloatField(null=True)),
                ("stock", models.IntegerField(null=True)),
                ("note", models.TextField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Category",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=40)),
            ],
        ),
        migrations.CreateModel(
            name="Tag",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ("word", models.SlugField(unique=True)),
            ],
        ),
        migrations.CreateModel(
            name="Kind",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("small", models.SmallIntegerField(null=True)),
                ("big", models.BigIntegerField(null=True)),
                ("positive", models.PositiveSmallIntegerField(null=True)),
                ("ratio", models.FloatField(null=True)),
                ("price", models.DecimalField(decimal_places=4, max_digits=12, null=True)),
                ("ok", models.BooleanField(null=True)),
                ("name", models.CharField(max_length=20, null=True)),
                ("data", models.BinaryField(null=True)),
                ("day", models.DateField(null=True)),
                ("clock", models.TimeField(null=True)),
                ("at", models.DateTimeField(null=True)),
                ("span", models.DurationField(null=True)),
                ("doc", models.JSONField(null=True)),
                ("uid", models.UUIDField(null=True)),
                *([("address", models.GenericIPAddressField(null=True))] if ADDRESSES else []),
                ("email", models.EmailField(max_length=254, null=True)),
                ("link", models.URLField(null=True)),
            ],
        ),
    ]
