"""Form one: dynamic resources. Import the classes from ``pulumi_hosting``."""

from collections.abc import Mapping, Sequence

import pulumi

from pulumi_hosting.provider.declare import _HostingResource
from pulumi_hosting.provider.dynamic import ServerProvider, SshKeyProvider


class Server(_HostingResource, module="hosting", name="Server"):
    """A virtual server, ordered once (API document, "Servers").

    Creating it charges the balance; deleting it credits the unused part. Name, notes and auto-renew change in place; tariff, image,
    billing cycle, SSH keys and password replace the server; period, promo code and custom fields matter when ordering only.
    """

    name: pulumi.Output[str]
    """Host name."""
    hostname: pulumi.Output[str | None]
    """Host name kept by the panel."""
    status: pulumi.Output[str]
    """``active`` | ``stopped`` | ``suspended`` | ``pending_cancel`` | ``cancelled`` | ``terminated``."""
    tariff_id: pulumi.Output[int]
    """Id of the tariff."""
    tariff: pulumi.Output[str | None]
    """Name of the tariff."""
    os: pulumi.Output[str]
    """Image slug as ordered."""
    location: pulumi.Output[str | None]
    """Name of the location."""
    ip: pulumi.Output[str | None]
    """Primary address."""
    ips: pulumi.Output[list[str]]
    """Every address, v4 and v6."""
    notes: pulumi.Output[str | None]
    """Free text shown in the cabinet."""
    auto_renew: pulumi.Output[bool | None]
    """Whether the service renews it from the balance."""
    billing_cycle: pulumi.Output[str | None]
    """``monthly`` | ``hourly``."""
    price_monthly: pulumi.Output[str | None]
    """Price per month, a decimal in ``currency``."""
    recurring_amount: pulumi.Output[str | None]
    """Price of the next renewal, a decimal in ``currency``."""
    currency: pulumi.Output[str | None]
    """ISO 4217 code."""
    next_due_at: pulumi.Output[str | None]
    """When the next renewal is due (RFC 3339, UTC)."""
    refund_amount: pulumi.Output[str | None]
    """What a deletion would credit, a decimal in ``currency``, as of the last read."""
    blocked: pulumi.Output[bool | None]
    """Locked by staff."""
    created_at: pulumi.Output[str | None]
    """When it was created (RFC 3339, UTC)."""
    invoice_id: pulumi.Output[str | None]
    """Invoice of the order; empty in the sandbox and for adopted servers."""
    charged: pulumi.Output[str | None]
    """What the order cost, a decimal in ``currency``."""
    root_password: pulumi.Output[str | None]
    """Root password, where it was shown or declared. Always a secret."""
    ssh_key_ids: pulumi.Output[list[str] | None]
    """Ids of the SSH keys installed when ordering."""
    password: pulumi.Output[str | None]
    """Root password as declared. Always a secret."""

    def __init__(
        self,
        resource_name: str,
        *,
        tariff_id: pulumi.Input[int],
        os: pulumi.Input[str],
        name: pulumi.Input[str] | None = None,
        months: pulumi.Input[int] | None = None,
        hours: pulumi.Input[int] | None = None,
        billing_cycle: pulumi.Input[str] | None = None,
        ssh_key_ids: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        password: pulumi.Input[str] | None = None,
        promo_code: pulumi.Input[str] | None = None,
        custom_fields: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        auto_renew: pulumi.Input[bool] | None = None,
        notes: pulumi.Input[str] | None = None,
        adopt_id: pulumi.Input[str] | None = None,
        order_attempt: pulumi.Input[int] | None = None,
        wait_timeout: pulumi.Input[float] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare a server.

        :param resource_name: Name in the stack; together with project, stack and parent it is the server's identity for ordering once.
        :param tariff_id: Id of the tariff, from the catalog. A change replaces the server.
        :param os: Image slug, from the catalog. A change replaces the server.
        :param name: Host name of A-Z a-z 0-9 . _ -; default: ``resource_name``.
        :param months: Months paid when ordering: 1 (default), 3, 6 or 12; not together with ``hours``.
        :param hours: Hours paid when ordering an hourly server: 1 to 720.
        :param billing_cycle: ``monthly`` or ``hourly``. A change replaces the server.
        :param ssh_key_ids: Ids of SSH keys to install; order does not matter. A change replaces the server.
        :param password: Root password: 8 to 64 characters of A-Z a-z 0-9 ! @ # $ % ^ & * - with a letter and a digit; generated when
            absent. A change replaces the server.
        :param promo_code: Promo code, up to 64 characters; matters when ordering only.
        :param custom_fields: Answers to the provider's extra order questions, up to 30; matter when ordering only.
        :param auto_renew: Whether the service renews it from the balance; not managed when absent.
        :param notes: Free text shown in the cabinet; not managed when absent.
        :param adopt_id: Take over this existing server instead of ordering one.
        :param order_attempt: Raise it to say "order again" where the provider stopped rather than buy a second server of a name.
        :param wait_timeout: Seconds to wait for an order that is still provisioning; default 600.
        """
        inputs = {
            "tariff_id": tariff_id,
            "os": os,
            "name": resource_name if name is None else name,
            "months": months,
            "hours": hours,
            "billing_cycle": billing_cycle,
            "ssh_key_ids": ssh_key_ids,
            "password": None if password is None else pulumi.Output.secret(password),
            "promo_code": promo_code,
            "custom_fields": custom_fields,
            "auto_renew": auto_renew,
            "notes": notes,
            "adopt_id": adopt_id,
            "order_attempt": order_attempt,
        }
        super().__init__(ServerProvider(), resource_name, inputs, wait_timeout, opts)


class SshKey(_HostingResource, module="hosting", name="SshKey"):
    """An SSH public key of the account, found by its fingerprint and never doubled (API document, "SSH keys").

    It cannot be changed in place: a new name or key is a new object, and the old one goes first.
    """

    name: pulumi.Output[str]
    """Name shown in the account."""
    public_key: pulumi.Output[str]
    """The public key line."""
    fingerprint: pulumi.Output[str]
    """Fingerprint in the ``SHA256:`` form."""
    type: pulumi.Output[str]
    """Key type, for example ``ssh-ed25519``."""
    created_at: pulumi.Output[str | None]
    """When it was added (RFC 3339, UTC)."""

    def __init__(
        self,
        resource_name: str,
        *,
        public_key: pulumi.Input[str],
        name: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare a key.

        :param resource_name: Name in the stack.
        :param public_key: One OpenSSH public key line, ``type base64 comment``. A change makes a new key.
        :param name: Name shown in the account; default: ``resource_name``. A change makes a new key.
        """
        inputs = {"name": resource_name if name is None else name, "public_key": public_key}
        super().__init__(SshKeyProvider(), resource_name, inputs, None, opts)
