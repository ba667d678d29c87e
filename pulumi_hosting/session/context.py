"""The former names of ``Request`` and ``account``."""

from pulumi_hosting.session.account import account as account
from pulumi_hosting.session.account import know_account as know_account
from pulumi_hosting.session.request import Request

Context = Request
