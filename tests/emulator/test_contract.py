"""Every operation of the table answers in both dialects, with a body its model accepts and the headers every answer has."""

from collections.abc import Callable

import httpx
import pytest
from pydantic import TypeAdapter

from pulumi_hosting.api.operations import OPERATIONS, Operation
from tests.emulator.support import OTHER_KEY, PUBLIC_KEY, EmulatorHarness, code

Scene = Callable[[EmulatorHarness], httpx.Response]


def invoice(lab: EmulatorHarness) -> int:
    id: int = lab.control("POST", "/invoices", {"amount": "3.00"})["id"]
    return id


def address(lab: EmulatorHarness) -> str:
    server = lab.server()
    lab.api("POST", f"/servers/{server}/ips")
    bought = lab.api("GET", f"/servers/{server}/ips").json()["data"][-1]["id"]
    return f"/servers/{server}/ips/{bought}"


def ssh_key(lab: EmulatorHarness) -> int:
    id: int = lab.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"]
    return id


def delivery(lab: EmulatorHarness) -> int:
    hook = lab.subscribe()["id"]
    lab.server()
    lab.advance(0)
    id: int = lab.api("GET", f"/webhooks/{hook}/deliveries").json()["data"][0]["id"]
    return id


def own_key(lab: EmulatorHarness) -> int:
    id: int = lab.api("GET", "/me").json()["key"]["id"]
    return id


SCENES: dict[str, Scene] = {
    "get_health": lambda lab: lab.call(None, "GET", "/health"),
    "get_openapi": lambda lab: lab.call(None, "GET", "/openapi.json"),
    "get_me": lambda lab: lab.api("GET", "/me"),
    "get_account": lambda lab: lab.api("GET", "/account"),
    "get_balance": lambda lab: lab.api("GET", "/balance"),
    "list_transactions": lambda lab: (lab.server(), lab.api("GET", "/transactions"))[1],
    "get_topup_info": lambda lab: lab.api("GET", "/balance/topup-info"),
    "create_topup": lambda lab: lab.api("POST", "/balance/topup", {"amount": "10.00", "gateway": "card"}),
    "list_invoices": lambda lab: (lab.server(), lab.api("GET", "/invoices"))[1],
    "get_invoice": lambda lab: lab.api("GET", f"/invoices/{invoice(lab)}"),
    "get_invoice_pdf": lambda lab: lab.api("GET", f"/invoices/{invoice(lab)}/pdf"),
    "pay_invoice": lambda lab: lab.api("POST", f"/invoices/{invoice(lab)}/pay"),
    "create_invoice_payment_link": lambda lab: lab.api("POST", f"/invoices/{invoice(lab)}/payment-link"),
    "list_tariffs": lambda lab: lab.api("GET", "/catalog/tariffs?location_id=2"),
    "get_tariff": lambda lab: lab.api("GET", "/catalog/tariffs/3"),
    "list_os_images": lambda lab: lab.api("GET", "/catalog/os?tariff_id=5"),
    "list_locations": lambda lab: lab.api("GET", "/catalog/locations"),
    "list_zones": lambda lab: lab.api("GET", "/catalog/zones"),
    "get_quote": lambda lab: lab.api("GET", "/catalog/quote?tariff_id=1&months=12&promo_code=SAVE20"),
    "list_servers": lambda lab: (lab.server(), lab.api("GET", "/servers?status=active"))[1],
    "create_server": lambda lab: lab.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"}),
    "get_server": lambda lab: lab.api("GET", f"/servers/{lab.server()}?include=live"),
    "update_server": lambda lab: lab.api("PATCH", f"/servers/{lab.server()}", {"name": "other", "notes": None, "auto_renew": False}),
    "delete_server": lambda lab: lab.api("DELETE", f"/servers/{lab.server()}"),
    "get_server_status": lambda lab: lab.api("GET", f"/servers/{lab.server()}/status"),
    "get_server_refund_quote": lambda lab: lab.api("GET", f"/servers/{lab.server()}/refund-quote"),
    "power_server": lambda lab: lab.api("POST", f"/servers/{lab.server()}/actions/power", {"action": "stop"}),
    "reinstall_server": lambda lab: lab.api("POST", f"/servers/{lab.server()}/actions/reinstall", {"os": "debian-12"}),
    "reset_server_password": lambda lab: lab.api("POST", f"/servers/{lab.server()}/actions/reset-password"),
    "renew_server": lambda lab: lab.api("POST", f"/servers/{lab.server()}/renew", {"months": 3}),
    "list_server_ips": lambda lab: lab.api("GET", f"/servers/{lab.server()}/ips"),
    "get_server_ip_quote": lambda lab: lab.api("GET", f"/servers/{lab.server()}/ips/quote"),
    "add_server_ip": lambda lab: lab.api("POST", f"/servers/{lab.server()}/ips"),
    "delete_server_ip": lambda lab: lab.api("DELETE", address(lab)),
    "set_server_ip_ptr": lambda lab: lab.api("PUT", f"{address(lab)}/ptr", {"domain": "mail.example.com"}),
    "list_orders": lambda lab: lab.api("GET", "/orders?status=provisioning"),
    "get_order": lambda lab: lab.api("GET", f"/orders/{lab.order()['invoice_id']}"),
    "list_ssh_keys": lambda lab: (ssh_key(lab), lab.api("GET", "/ssh-keys"))[1],
    "create_ssh_key": lambda lab: lab.api("POST", "/ssh-keys", {"name": "a", "public_key": OTHER_KEY}),
    "delete_ssh_key": lambda lab: lab.api("DELETE", f"/ssh-keys/{ssh_key(lab)}"),
    "check_domain_availability": lambda lab: lab.api("GET", "/domains/availability?name=example.com"),
    "list_domains": lambda lab: (lab.domain(), lab.api("GET", "/domains"))[1],
    "get_domain": lambda lab: lab.api("GET", f"/domains/{lab.domain()}"),
    "register_domain": lambda lab: lab.api("POST", "/domains", {"name": "example.com"}),
    "set_domain_nameservers": lambda lab: lab.api(
        "PUT", f"/domains/{lab.domain()}/nameservers", {"nameservers": ["a.example.net", "b.example.net"]}
    ),
    "update_domain": lambda lab: lab.api("PATCH", f"/domains/{lab.domain()}", {"auto_renew": True, "privacy": False}),
    "renew_domain": lambda lab: lab.api("POST", f"/domains/{lab.domain()}/renew", {"years": 2}),
    "transfer_domain": lambda lab: lab.api("POST", "/domains/transfers", {"name": "moved.com", "auth_code": "s3cret-code"}),
    "list_api_keys": lambda lab: lab.api("GET", "/keys"),
    "get_api_key": lambda lab: lab.api("GET", f"/keys/{own_key(lab)}"),
    "revoke_api_key": lambda lab: lab.api("DELETE", f"/keys/{own_key(lab)}"),
    "list_webhook_events": lambda lab: lab.api("GET", "/webhooks/events"),
    "list_webhooks": lambda lab: (lab.subscribe(), lab.api("GET", "/webhooks"))[1],
    "create_webhook": lambda lab: lab.api("POST", "/webhooks", {"url": "https://hooks.example.org/", "events": ["*"]}),
    "get_webhook": lambda lab: lab.api("GET", f"/webhooks/{lab.subscribe()['id']}"),
    "update_webhook": lambda lab: lab.api("PATCH", f"/webhooks/{lab.subscribe()['id']}", {"description": "x", "active": True}),
    "delete_webhook": lambda lab: lab.api("DELETE", f"/webhooks/{lab.subscribe()['id']}"),
    "rotate_webhook_secret": lambda lab: lab.api("POST", f"/webhooks/{lab.subscribe()['id']}/rotate-secret"),
    "test_webhook": lambda lab: lab.api("POST", f"/webhooks/{lab.subscribe()['id']}/test"),
    "list_webhook_deliveries": lambda lab: (
        delivery(lab),
        lab.api("GET", f"/webhooks/{lab.api('GET', '/webhooks').json()['data'][0]['id']}/deliveries?event_type=server.created"),
    )[1],
    "get_webhook_delivery": lambda lab: lab.api("GET", f"/webhooks/deliveries/{delivery(lab)}"),
    "redeliver_webhook": lambda lab: lab.api("POST", f"/webhooks/deliveries/{delivery(lab)}/redeliver"),
}


def test_every_operation_has_a_scene() -> None:
    assert list(SCENES) == [operation.id for operation in OPERATIONS]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_answer(operation: Operation, both: EmulatorHarness, dialect: str) -> None:
    response = SCENES[operation.id](both)
    expected = operation.live_status if dialect == "live" and operation.live_status else operation.success
    assert response.status_code == expected, response.text
    assert (response.request.method, operation.auth or "authorization" not in response.request.headers) == (operation.method, True)

    model = operation.response_model(response.status_code)
    if model is None:
        assert response.content == b""
    elif model is bytes:
        assert response.headers["Content-Type"] == "application/pdf"
    else:
        assert response.headers["Content-Type"] == "application/json"
        parsed = TypeAdapter(model).validate_json(response.content)
        assert parsed is not None

    assert response.headers["X-Request-ID"]
    assert response.headers["Cache-Control"] == ("public, max-age=300" if operation.id == "get_openapi" else "no-store")
    expensive = operation.is_expensive(dict(response.request.url.params)) or (dialect == "live" and operation.live_expensive)
    if operation.auth:
        assert response.headers["X-RateLimit-Limit"] == ("20" if expensive else "120")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_sandbox_mode(operation: Operation, both: EmulatorHarness) -> None:
    """A test key gets what the row's sandbox mode says, and every answer of its own carries X-Sandbox."""
    path = str(SCENES[operation.id](both).request.url.raw_path, "ascii").removeprefix("/v1")
    request = both.control("GET", "/requests")[-1]
    if operation.sandbox == "forbidden":
        assert code(both.test(operation.method, path, request["body"])) == "sandbox_not_supported"
        return
    before = everything(both)
    response = both.test(operation.method, path, request["body"])
    assert response.headers["X-Sandbox"] == "true"
    if operation.sandbox == "fake":
        assert everything(both) == before


def everything(lab: EmulatorHarness) -> object:
    """All that is real: what sandbox servers are and have, and when keys were used, left out."""
    objects = lab.control("GET", "/objects")
    del objects["keys"]
    objects["servers"] = [row for row in objects["servers"] if row["id"] < 9_000_000_000]
    objects["addresses"] = [row for row in objects["addresses"] if row["server_id"] < 9_000_000_000]
    return objects, lab.control("GET", "/ledger")


def test_a_simulated_write_answers_in_the_shape_of_a_real_one(both: EmulatorHarness, dialect: str) -> None:
    """What a real object answered to a live key, and the same call with the test key: both fit the model."""
    skipped = {"revoke_api_key", "delete_server", "delete_ssh_key", "delete_server_ip", "pay_invoice"}  # gone, or paid, after the live call
    for operation in OPERATIONS:
        if operation.sandbox != "fake" or operation.id in skipped:
            continue
        lab = EmulatorHarness(dialect=dialect)
        live = SCENES[operation.id](lab)
        request = lab.control("GET", "/requests")[-1]
        body = {**(request["body"] or {}), **({"auth_code": "x1234567"} if operation.id == "transfer_domain" else {})} or None
        body = {**(body or {}), "name": "other.com"} if operation.id in ("register_domain", "transfer_domain") else body
        if operation.id == "create_ssh_key":
            body = {"name": "b", "public_key": PUBLIC_KEY}
        response = lab.test(operation.method, request["path"], body)
        assert response.status_code == live.status_code, (operation.id, response.text)
        model = operation.response_model(response.status_code)
        TypeAdapter(model).validate_json(response.content)
        assert set(response.json()) == set(live.json()), operation.id


def test_every_difference_of_the_dialects_is_played() -> None:
    """No entry of the list that nobody asks, and none that makes no difference."""
    from pathlib import Path

    import pulumi_hosting.emulator
    from pulumi_hosting.emulator import dialects

    root = Path(pulumi_hosting.emulator.__file__).parent
    source = "".join(path.read_text() for path in root.rglob("*.py"))
    names = {name for name, value in vars(dialects).items() if isinstance(value, dialects.Difference)}
    assert len(names) == len(dialects.DIFFERENCES)
    for name in names:
        assert f"{name}(" in source, name
        assert vars(dialects)[name].spec != vars(dialects)[name].live
