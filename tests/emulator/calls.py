"""One successful call of every operation: explicit, or derived from the table and the examples of its
fields.
"""

from collections.abc import Callable
from functools import partial

import httpx

from pulumi_hosting.api.operations import OPERATIONS, Operation
from tests.emulator.support import OTHER_KEY, PUBLIC_KEY, EmulatorHarness
from tests.support.operations import Arguments, arguments

EmulatorCall = Callable[[EmulatorHarness], httpx.Response]


def invoice(emu: EmulatorHarness) -> int:
    id: int = emu.control("POST", "/invoices", {"amount": "3.00"})["id"]
    return id


def address(emu: EmulatorHarness) -> str:
    server = emu.server()
    emu.api("POST", f"/servers/{server}/ips")
    bought = emu.api("GET", f"/servers/{server}/ips").json()["data"][-1]["id"]
    return f"/servers/{server}/ips/{bought}"


def ssh_key(emu: EmulatorHarness) -> int:
    id: int = emu.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"]
    return id


def delivery(emu: EmulatorHarness) -> int:
    hook = emu.subscribe()["id"]
    emu.server()
    emu.advance(0)
    id: int = emu.api("GET", f"/webhooks/{hook}/deliveries").json()["data"][0]["id"]
    return id


def delivery_list(emu: EmulatorHarness) -> httpx.Response:
    delivery(emu)
    hook = emu.api("GET", "/webhooks").json()["data"][0]["id"]
    return emu.api("GET", f"/webhooks/{hook}/deliveries?event_type=server.created")


def own_key(emu: EmulatorHarness) -> int:
    id: int = emu.api("GET", "/me").json()["key"]["id"]
    return id


EXPLICIT_CALLS: dict[str, EmulatorCall] = {
    "list_transactions": lambda emu: (emu.server(), emu.api("GET", "/transactions"))[1],
    "create_topup": lambda emu: emu.api("POST", "/balance/topup", {"amount": "10.00", "gateway": "card"}),
    "list_invoices": lambda emu: (emu.server(), emu.api("GET", "/invoices"))[1],
    "pay_invoice": lambda emu: emu.api("POST", f"/invoices/{invoice(emu)}/pay"),
    "create_invoice_payment_link": lambda emu: emu.api("POST", f"/invoices/{invoice(emu)}/payment-link"),
    "list_tariffs": lambda emu: emu.api("GET", "/catalog/tariffs?location_id=2"),
    "get_tariff": lambda emu: emu.api("GET", "/catalog/tariffs/3"),
    "list_os_images": lambda emu: emu.api("GET", "/catalog/os?tariff_id=5"),
    "get_quote": lambda emu: emu.api("GET", "/catalog/quote?tariff_id=1&months=12&promo_code=SAVE20"),
    "list_servers": lambda emu: (emu.server(), emu.api("GET", "/servers?status=active"))[1],
    "create_server": lambda emu: emu.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"}),
    "get_server": lambda emu: emu.api("GET", f"/servers/{emu.server()}?include=live"),
    "update_server": lambda emu: emu.api(
        "PATCH", f"/servers/{emu.server()}", {"name": "other", "notes": None, "auto_renew": False}
    ),
    "delete_server": lambda emu: emu.api("DELETE", f"/servers/{emu.server()}"),
    "power_server": lambda emu: emu.api("POST", f"/servers/{emu.server()}/actions/power", {"action": "stop"}),
    "reinstall_server": lambda emu: emu.api(
        "POST", f"/servers/{emu.server()}/actions/reinstall", {"os": "debian-12"}
    ),
    "reset_server_password": lambda emu: emu.api("POST", f"/servers/{emu.server()}/actions/reset-password"),
    "renew_server": lambda emu: emu.api("POST", f"/servers/{emu.server()}/renew", {"months": 3}),
    "add_server_ip": lambda emu: emu.api("POST", f"/servers/{emu.server()}/ips"),
    "delete_server_ip": lambda emu: emu.api("DELETE", address(emu)),
    "set_server_ip_ptr": lambda emu: emu.api("PUT", f"{address(emu)}/ptr", {"domain": "mail.example.com"}),
    "get_order": lambda emu: emu.api("GET", f"/orders/{emu.order()['invoice_id']}"),
    "list_orders": lambda emu: emu.api("GET", "/orders?status=provisioning"),
    "list_ssh_keys": lambda emu: (ssh_key(emu), emu.api("GET", "/ssh-keys"))[1],
    "create_ssh_key": lambda emu: emu.api("POST", "/ssh-keys", {"name": "a", "public_key": OTHER_KEY}),
    "delete_ssh_key": lambda emu: emu.api("DELETE", f"/ssh-keys/{ssh_key(emu)}"),
    "check_domain_availability": lambda emu: emu.api("GET", "/domains/availability?name=example.com"),
    "list_domains": lambda emu: (emu.domain(), emu.api("GET", "/domains"))[1],
    "register_domain": lambda emu: emu.api("POST", "/domains", {"name": "example.com"}),
    "set_domain_nameservers": lambda emu: emu.api(
        "PUT", f"/domains/{emu.domain()}/nameservers", {"nameservers": ["a.example.net", "b.example.net"]}
    ),
    "update_domain": lambda emu: emu.api(
        "PATCH", f"/domains/{emu.domain()}", {"auto_renew": True, "privacy": False}
    ),
    "renew_domain": lambda emu: emu.api("POST", f"/domains/{emu.domain()}/renew", {"years": 2}),
    "transfer_domain": lambda emu: emu.api(
        "POST", "/domains/transfers", {"name": "moved.com", "auth_code": "s3cret-code"}
    ),
    "revoke_api_key": lambda emu: emu.api("DELETE", f"/keys/{own_key(emu)}"),
    "list_webhooks": lambda emu: (emu.subscribe(), emu.api("GET", "/webhooks"))[1],
    "create_webhook": lambda emu: emu.api(
        "POST", "/webhooks", {"url": "https://hooks.example.org/", "events": ["*"]}
    ),
    "update_webhook": lambda emu: emu.api(
        "PATCH", f"/webhooks/{emu.subscribe()['id']}", {"description": "x", "active": True}
    ),
    "delete_webhook": lambda emu: emu.api("DELETE", f"/webhooks/{emu.subscribe()['id']}"),
    "rotate_webhook_secret": lambda emu: emu.api("POST", f"/webhooks/{emu.subscribe()['id']}/rotate-secret"),
    "test_webhook": lambda emu: emu.api("POST", f"/webhooks/{emu.subscribe()['id']}/test"),
    "list_webhook_deliveries": delivery_list,
    "redeliver_webhook": lambda emu: emu.api("POST", f"/webhooks/deliveries/{delivery(emu)}/redeliver"),
}

IDS: dict[str, Callable[[EmulatorHarness], int]] = {
    "server_id": lambda emu: emu.server(),
    "invoice_id": invoice,
    "domain_id": lambda emu: emu.domain(),
    "tariff_id": lambda emu: 3,
    "key_id": own_key,
    "webhook_id": lambda emu: int(emu.subscribe()["id"]),
    "delivery_id": delivery,
}


def derived_call(operation: Operation) -> EmulatorCall:
    """A call with what the path needs and the examples of the fields."""

    def call(emu: EmulatorHarness) -> httpx.Response:
        makers = {name: partial(maker, emu) for name, maker in IDS.items()}

        def make(creator: Operation, given: Arguments) -> int:
            id: int = emu.api("POST", given.path(creator), given.body).json()["id"]
            return id

        given = arguments(operation, makers, make)
        return emu.call(
            emu.live_key if operation.auth else None, operation.method, given.path(operation), given.body
        )

    return call


CALLS: dict[str, EmulatorCall] = {
    operation.id: EXPLICIT_CALLS.get(operation.id) or derived_call(operation) for operation in OPERATIONS
}
