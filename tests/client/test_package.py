"""What ``import pulumi_hosting`` gives."""

import subprocess
import sys

import pytest

import pulumi_hosting
from pulumi_hosting.api.models import Order
from pulumi_hosting.client import exceptions
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.session import errors


def test_names_are_loaded_when_they_are_used() -> None:
    code = (
        "import sys, pulumi_hosting; assert 'Client' in dir(pulumi_hosting); "
        "assert 'pulumi_hosting.client.client' not in sys.modules; pulumi_hosting.Client; "
        "assert 'pulumi_hosting.client.client' in sys.modules; assert not {'httpx', 'pulumi'} & "
        "set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_the_package_exports_the_classes_of_its_modules() -> None:
    assert pulumi_hosting.Client is Client
    assert pulumi_hosting.HostingError is HostingError


def test_the_package_exports_every_error_class() -> None:
    every = {
        name
        for name, value in vars(exceptions).items()
        if isinstance(value, type) and issubclass(value, HostingError)
    }
    assert len(every) > 30
    for name in every:
        assert getattr(pulumi_hosting, name) is getattr(exceptions, name)


def test_the_package_exports_every_stop_of_resources_and_actions() -> None:
    every = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert len(every) > 10
    for name in every:
        assert getattr(pulumi_hosting, name) is getattr(errors, name)


def test_models_actions_and_webhooks_need_no_import_of_their_own() -> None:
    code = (
        "import sys, pulumi_hosting; assert not [name for name in sys.modules if 'pulumi_hosting.' in name]; "
        "assert pulumi_hosting.models.Server.__name__ == 'Server'; pulumi_hosting.webhooks.verify; "
        "pulumi_hosting.actions.act; assert 'pulumi' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    assert pulumi_hosting.models.Order is Order


def test_the_package_exports_the_functions_for_damaged_lists() -> None:
    assert {"Damaged", "matching", "readable", "whole"} <= set(pulumi_hosting.__all__)


def test_an_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        getattr(pulumi_hosting, "nothing_like_it")  # noqa: B009  # a type checker refuses the name
