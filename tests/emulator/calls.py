"""One successful call of every operation: explicit, or derived from the table and the examples of its
fields.
"""

from collections.abc import Callable
from functools import partial

import httpx

from pulumi_hosting.api.operations import OPERATIONS, Operation
from tests.emulator.support import OTHER_KEY, PUBLIC_KEY
from tests.support.account import Account
from tests.support.operations import Arguments, arguments

EmulatorCall = Callable[[Account], httpx.Response]


def invoice(account: Account) -> int:
    id: int = account.control("POST", "/invoices", {"amount": "3.00"})["id"]
    return id


def address(account: Account) -> str:
    server = account.server()
    account.api("POST", f"/servers/{server}/ips")
    bought = account.api("GET", f"/servers/{server}/ips").json()["data"][-1]["id"]
    return f"/servers/{server}/ips/{bought}"


def ssh_key(account: Account) -> int:
    id: int = account.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"]
    return id


def delivery(account: Account) -> int:
    hook = account.subscribe()["id"]
    account.server()
    account.advance(0)
    id: int = account.api("GET", f"/webhooks/{hook}/deliveries").json()["data"][0]["id"]
    return id


def delivery_list(account: Account) -> httpx.Response:
    delivery(account)
    hook = account.api("GET", "/webhooks").json()["data"][0]["id"]
    return account.api("GET", f"/webhooks/{hook}/deliveries?event_type=server.created")


def own_key(account: Account) -> int:
    id: int = account.api("GET", "/me").json()["key"]["id"]
    return id


EXPLICIT_CALLS: dict[str, EmulatorCall] = {
    "list_transactions": lambda account: (account.server(), account.api("GET", "/transactions"))[1],
    "create_topup": lambda account: account.api(
        "POST", "/balance/topup", {"amount": "10.00", "gateway": "card"}
    ),
    "list_invoices": lambda account: (account.server(), account.api("GET", "/invoices"))[1],
    "pay_invoice": lambda account: account.api("POST", f"/invoices/{invoice(account)}/pay"),
    "create_invoice_payment_link": lambda account: account.api(
        "POST", f"/invoices/{invoice(account)}/payment-link"
    ),
    "list_tariffs": lambda account: account.api("GET", "/catalog/tariffs?location_id=2"),
    "get_tariff": lambda account: account.api("GET", "/catalog/tariffs/3"),
    "list_os_images": lambda account: account.api("GET", "/catalog/os?tariff_id=5"),
    "get_quote": lambda account: account.api("GET", "/catalog/quote?tariff_id=1&months=12&promo_code=SAVE20"),
    "list_servers": lambda account: (account.server(), account.api("GET", "/servers?status=active"))[1],
    "create_server": lambda account: account.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"}),
    "get_server": lambda account: account.api("GET", f"/servers/{account.server()}?include=live"),
    "update_server": lambda account: account.api(
        "PATCH", f"/servers/{account.server()}", {"name": "other", "notes": None, "auto_renew": False}
    ),
    "delete_server": lambda account: account.api("DELETE", f"/servers/{account.server()}"),
    "power_server": lambda account: account.api(
        "POST", f"/servers/{account.server()}/actions/power", {"action": "stop"}
    ),
    "reinstall_server": lambda account: account.api(
        "POST", f"/servers/{account.server()}/actions/reinstall", {"os": "debian-12"}
    ),
    "reset_server_password": lambda account: account.api(
        "POST", f"/servers/{account.server()}/actions/reset-password"
    ),
    "renew_server": lambda account: account.api("POST", f"/servers/{account.server()}/renew", {"months": 3}),
    "add_server_ip": lambda account: account.api("POST", f"/servers/{account.server()}/ips"),
    "delete_server_ip": lambda account: account.api("DELETE", address(account)),
    "set_server_ip_ptr": lambda account: account.api(
        "PUT", f"{address(account)}/ptr", {"domain": "mail.example.com"}
    ),
    "get_order": lambda account: account.api("GET", f"/orders/{account.order()['invoice_id']}"),
    "list_orders": lambda account: account.api("GET", "/orders?status=provisioning"),
    "list_ssh_keys": lambda account: (ssh_key(account), account.api("GET", "/ssh-keys"))[1],
    "create_ssh_key": lambda account: account.api(
        "POST", "/ssh-keys", {"name": "a", "public_key": OTHER_KEY}
    ),
    "delete_ssh_key": lambda account: account.api("DELETE", f"/ssh-keys/{ssh_key(account)}"),
    "check_domain_availability": lambda account: account.api("GET", "/domains/availability?name=example.com"),
    "list_domains": lambda account: (account.domain(), account.api("GET", "/domains"))[1],
    "register_domain": lambda account: account.api("POST", "/domains", {"name": "example.com"}),
    "set_domain_nameservers": lambda account: account.api(
        "PUT", f"/domains/{account.domain()}/nameservers", {"nameservers": ["a.example.net", "b.example.net"]}
    ),
    "update_domain": lambda account: account.api(
        "PATCH", f"/domains/{account.domain()}", {"auto_renew": True, "privacy": False}
    ),
    "renew_domain": lambda account: account.api("POST", f"/domains/{account.domain()}/renew", {"years": 2}),
    "transfer_domain": lambda account: account.api(
        "POST", "/domains/transfers", {"name": "moved.com", "auth_code": "s3cret-code"}
    ),
    "revoke_api_key": lambda account: account.api("DELETE", f"/keys/{own_key(account)}"),
    "list_webhooks": lambda account: (account.subscribe(), account.api("GET", "/webhooks"))[1],
    "create_webhook": lambda account: account.api(
        "POST", "/webhooks", {"url": "https://hooks.example.org/", "events": ["*"]}
    ),
    "update_webhook": lambda account: account.api(
        "PATCH", f"/webhooks/{account.subscribe()['id']}", {"description": "x", "active": True}
    ),
    "delete_webhook": lambda account: account.api("DELETE", f"/webhooks/{account.subscribe()['id']}"),
    "rotate_webhook_secret": lambda account: account.api(
        "POST", f"/webhooks/{account.subscribe()['id']}/rotate-secret"
    ),
    "test_webhook": lambda account: account.api("POST", f"/webhooks/{account.subscribe()['id']}/test"),
    "list_webhook_deliveries": delivery_list,
    "redeliver_webhook": lambda account: account.api(
        "POST", f"/webhooks/deliveries/{delivery(account)}/redeliver"
    ),
}

IDS: dict[str, Callable[[Account], int]] = {
    "server_id": lambda account: account.server(),
    "invoice_id": invoice,
    "domain_id": lambda account: account.domain(),
    "tariff_id": lambda account: 3,
    "key_id": own_key,
    "webhook_id": lambda account: int(account.subscribe()["id"]),
    "delivery_id": delivery,
}


def derived_call(operation: Operation) -> EmulatorCall:
    """A call with what the path needs and the examples of the fields."""

    def call(account: Account) -> httpx.Response:
        makers = {name: partial(maker, account) for name, maker in IDS.items()}

        def make(creator: Operation, given: Arguments) -> int:
            id: int = account.api("POST", given.path(creator), given.body).json()["id"]
            return id

        given = arguments(operation, makers, make)
        return account.call(
            account.live_key if operation.auth else None, operation.method, given.path(operation), given.body
        )

    return call


CALLS: dict[str, EmulatorCall] = {
    operation.id: EXPLICIT_CALLS.get(operation.id) or derived_call(operation) for operation in OPERATIONS
}
