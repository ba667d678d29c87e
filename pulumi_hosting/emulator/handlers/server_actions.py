"""Power, reinstall, password reset."""

from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.handlers.servers import _check_image, _check_ssh_keys
from pulumi_hosting.emulator.messages import Answer, Refusal
from pulumi_hosting.emulator.rate_limits import hit_within, too_many


def power_server(call: Call) -> Answer:
    """Start and stop change the status between active and stopped, unless a cancellation is pending."""
    server = call.draft(call.changeable("active", "stopped", "pending_cancel"))
    action = call.body.action
    running = action != "stop"
    if running and (server.power != "running" or action == "restart"):
        server.power_since = call.now
    server.power = "running" if running else "stopped"
    if server.status != "pending_cancel":
        server.status = "active" if running else "stopped"
    word = {"start": "starting", "stop": "stopping", "restart": "restarting"}[action]
    return Answer(
        202,
        {"server_id": server.id, "action": action, "status": "accepted", "message": f"The server is {word}."},
    )


def reinstall_server(call: Call) -> Answer:
    """Takes the provisioning delay; until then the server is busy and has its old image."""
    server = call.changeable("active", "stopped")
    _check_image(call, call.store.tariffs[server.tariff_id], call.body.os)
    ssh_key_ids = _check_ssh_keys(call, call.body.ssh_key_ids)
    given = call.body.password.reveal() if call.body.password is not None else None
    password = given or call.store.password()
    row = call.draft(server)
    row.ssh_key_ids = ssh_key_ids
    if row is server:
        server.busy = "reinstall"
        done = call.now + call.store.provisioning_delay
        call.store.schedule(done, "finish_reinstall", server.id, call.body.os)
    return Answer(
        202,
        {
            "server_id": server.id,
            "status": "reinstalling",
            "os": call.body.os,
            "root_password": None if given else password,
        },
    )


def reset_server_password(call: Call) -> Answer:
    server = call.changeable("active", "stopped", "pending_cancel")
    if server.synthetic:
        raise Refusal("service_state", "there is no panel record", details={"status": server.status})
    for limit in call.operation.limits:
        name = f"{call.operation.id}:{call.key.mode}:{call.ids[limit.per]}"
        reset, over = hit_within(call.store, name, limit.calls, limit.seconds)
        if over:
            raise too_many(call.store, "normal", limit.calls, reset)
    return Answer(200, {"server_id": server.id, "password": call.store.password()})
