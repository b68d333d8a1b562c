"""The application's name, as Django wants it."""

from django.apps import AppConfig


class Shop(AppConfig):
    name = "shop"
    default_auto_field = "django.db.models.BigAutoField"
