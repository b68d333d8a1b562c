"""The models after both migrations."""

import sys
import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

# Without them the same program shows what else works where the type inet does not.
ADDRESSES = "without-addresses" not in sys.argv


class Category(models.Model):
    name = models.CharField(max_length=40, unique=True)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.CASCADE)


class Product(models.Model):
    category = models.ForeignKey(Category, on_delete=models.PROTECT, related_name="products")
    sku = models.CharField(max_length=60, unique=True)
    title = models.CharField(max_length=200, db_index=True)
    price = models.DecimalField(max_digits=10, decimal_places=2)
    stock = models.PositiveIntegerField(default=0)
    description = models.TextField(default="")
    tags = models.ManyToManyField("Tag", blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(price__gte=0), name="shop_price_not_negative"),
            models.UniqueConstraint(fields=["category", "title"], name="shop_one_title_a_category"),
            models.UniqueConstraint(fields=["owner"], condition=Q(stock=0), name="shop_one_empty_an_owner"),
        ]
        indexes = [models.Index(fields=["-price", "title"], name="shop_dearest")]


class Tag(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    word = models.SlugField(unique=True)


class Kinds(models.Model):
    """A field of every kind."""

    small = models.SmallIntegerField(null=True)
    big = models.BigIntegerField(null=True)
    positive = models.PositiveSmallIntegerField(null=True)
    ratio = models.FloatField(null=True)
    price = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    ok = models.BooleanField(null=True)
    name = models.CharField(max_length=20, null=True)
    data = models.BinaryField(null=True)
    day = models.DateField(null=True)
    clock = models.TimeField(null=True)
    at = models.DateTimeField(null=True)
    span = models.DurationField(null=True)
    doc = models.JSONField(null=True)
    uid = models.UUIDField(null=True)
    if ADDRESSES:
        address = models.GenericIPAddressField(null=True)
    email = models.EmailField(null=True)
    url = models.URLField(null=True)
