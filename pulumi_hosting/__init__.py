"""Infrastructure as code for hosting companies that speak the Hosting Client API v1.

    from pulumi_hosting import Client

    with Client() as client:        # HOSTING_API_KEY, HOSTING_BASE_URL
        print(client.me().scopes)

Importing this package loads nothing else: a name below is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulumi_hosting.api.secrets import Secret as Secret
    from pulumi_hosting.client.client import Client as Client
    from pulumi_hosting.client.exceptions import ApiError as ApiError
    from pulumi_hosting.client.exceptions import BadRequest as BadRequest
    from pulumi_hosting.client.exceptions import CallError as CallError
    from pulumi_hosting.client.exceptions import ConfigurationError as ConfigurationError
    from pulumi_hosting.client.exceptions import Conflict as Conflict
    from pulumi_hosting.client.exceptions import DomainBlocked as DomainBlocked
    from pulumi_hosting.client.exceptions import DomainUnavailable as DomainUnavailable
    from pulumi_hosting.client.exceptions import Forbidden as Forbidden
    from pulumi_hosting.client.exceptions import HostingError as HostingError
    from pulumi_hosting.client.exceptions import IdempotencyConflict as IdempotencyConflict
    from pulumi_hosting.client.exceptions import IdempotencyInProgress as IdempotencyInProgress
    from pulumi_hosting.client.exceptions import InsufficientFunds as InsufficientFunds
    from pulumi_hosting.client.exceptions import InsufficientScope as InsufficientScope
    from pulumi_hosting.client.exceptions import InvalidInput as InvalidInput
    from pulumi_hosting.client.exceptions import InvalidPeriod as InvalidPeriod
    from pulumi_hosting.client.exceptions import InvalidResponse as InvalidResponse
    from pulumi_hosting.client.exceptions import IpLimitReached as IpLimitReached
    from pulumi_hosting.client.exceptions import MethodNotAllowed as MethodNotAllowed
    from pulumi_hosting.client.exceptions import NoCapacity as NoCapacity
    from pulumi_hosting.client.exceptions import NotFound as NotFound
    from pulumi_hosting.client.exceptions import OperationInProgress as OperationInProgress
    from pulumi_hosting.client.exceptions import OsNotAllowed as OsNotAllowed
    from pulumi_hosting.client.exceptions import PayloadTooLarge as PayloadTooLarge
    from pulumi_hosting.client.exceptions import RateLimited as RateLimited
    from pulumi_hosting.client.exceptions import RedirectRefused as RedirectRefused
    from pulumi_hosting.client.exceptions import SandboxRefused as SandboxRefused
    from pulumi_hosting.client.exceptions import ServerBlocked as ServerBlocked
    from pulumi_hosting.client.exceptions import ServerError as ServerError
    from pulumi_hosting.client.exceptions import ServiceState as ServiceState
    from pulumi_hosting.client.exceptions import TimedOut as TimedOut
    from pulumi_hosting.client.exceptions import TransportError as TransportError
    from pulumi_hosting.client.exceptions import Unauthorized as Unauthorized
    from pulumi_hosting.client.exceptions import Unavailable as Unavailable
    from pulumi_hosting.client.exceptions import UnsupportedMediaType as UnsupportedMediaType
    from pulumi_hosting.client.exceptions import UpstreamRejected as UpstreamRejected
    from pulumi_hosting.client.exceptions import ValidationFailed as ValidationFailed
    from pulumi_hosting.client.exceptions import WebhookRejected as WebhookRejected
    from pulumi_hosting.client.exceptions import WriteRefused as WriteRefused
    from pulumi_hosting.client.results import UNSET as UNSET
    from pulumi_hosting.client.results import Damaged as Damaged
    from pulumi_hosting.client.results import matching as matching
    from pulumi_hosting.client.results import readable as readable
    from pulumi_hosting.client.results import whole as whole

# --- written by `make docs` from here
if TYPE_CHECKING:
    from pulumi_hosting.provider.args import DomainArgs as DomainArgs
    from pulumi_hosting.provider.args import PtrArgs as PtrArgs
    from pulumi_hosting.provider.args import ServerArgs as ServerArgs
    from pulumi_hosting.provider.args import ServerIpArgs as ServerIpArgs
    from pulumi_hosting.provider.args import SshKeyArgs as SshKeyArgs
    from pulumi_hosting.provider.args import WebhookSubscriptionArgs as WebhookSubscriptionArgs
    from pulumi_hosting.provider.classes import Domain as Domain
    from pulumi_hosting.provider.classes import Ptr as Ptr
    from pulumi_hosting.provider.classes import Server as Server
    from pulumi_hosting.provider.classes import ServerIp as ServerIp
    from pulumi_hosting.provider.classes import SshKey as SshKey
    from pulumi_hosting.provider.classes import WebhookSubscription as WebhookSubscription
    from pulumi_hosting.provider.functions import get_account as get_account
    from pulumi_hosting.provider.functions import get_account_output as get_account_output
    from pulumi_hosting.provider.functions import get_api_key as get_api_key
    from pulumi_hosting.provider.functions import get_api_key_output as get_api_key_output
    from pulumi_hosting.provider.functions import get_api_keys as get_api_keys
    from pulumi_hosting.provider.functions import get_api_keys_output as get_api_keys_output
    from pulumi_hosting.provider.functions import get_balance as get_balance
    from pulumi_hosting.provider.functions import get_balance_output as get_balance_output
    from pulumi_hosting.provider.functions import get_domain as get_domain
    from pulumi_hosting.provider.functions import get_domain_availability as get_domain_availability
    from pulumi_hosting.provider.functions import get_domain_availability_output as get_domain_availability_output
    from pulumi_hosting.provider.functions import get_domain_output as get_domain_output
    from pulumi_hosting.provider.functions import get_domains as get_domains
    from pulumi_hosting.provider.functions import get_domains_output as get_domains_output
    from pulumi_hosting.provider.functions import get_health as get_health
    from pulumi_hosting.provider.functions import get_health_output as get_health_output
    from pulumi_hosting.provider.functions import get_invoice as get_invoice
    from pulumi_hosting.provider.functions import get_invoice_output as get_invoice_output
    from pulumi_hosting.provider.functions import get_invoice_pdf as get_invoice_pdf
    from pulumi_hosting.provider.functions import get_invoice_pdf_output as get_invoice_pdf_output
    from pulumi_hosting.provider.functions import get_invoices as get_invoices
    from pulumi_hosting.provider.functions import get_invoices_output as get_invoices_output
    from pulumi_hosting.provider.functions import get_locations as get_locations
    from pulumi_hosting.provider.functions import get_locations_output as get_locations_output
    from pulumi_hosting.provider.functions import get_me as get_me
    from pulumi_hosting.provider.functions import get_me_output as get_me_output
    from pulumi_hosting.provider.functions import get_openapi as get_openapi
    from pulumi_hosting.provider.functions import get_openapi_output as get_openapi_output
    from pulumi_hosting.provider.functions import get_order as get_order
    from pulumi_hosting.provider.functions import get_order_output as get_order_output
    from pulumi_hosting.provider.functions import get_orders as get_orders
    from pulumi_hosting.provider.functions import get_orders_output as get_orders_output
    from pulumi_hosting.provider.functions import get_os_images as get_os_images
    from pulumi_hosting.provider.functions import get_os_images_output as get_os_images_output
    from pulumi_hosting.provider.functions import get_quote as get_quote
    from pulumi_hosting.provider.functions import get_quote_output as get_quote_output
    from pulumi_hosting.provider.functions import get_server as get_server
    from pulumi_hosting.provider.functions import get_server_ip_quote as get_server_ip_quote
    from pulumi_hosting.provider.functions import get_server_ip_quote_output as get_server_ip_quote_output
    from pulumi_hosting.provider.functions import get_server_ips as get_server_ips
    from pulumi_hosting.provider.functions import get_server_ips_output as get_server_ips_output
    from pulumi_hosting.provider.functions import get_server_output as get_server_output
    from pulumi_hosting.provider.functions import get_server_refund_quote as get_server_refund_quote
    from pulumi_hosting.provider.functions import get_server_refund_quote_output as get_server_refund_quote_output
    from pulumi_hosting.provider.functions import get_server_status as get_server_status
    from pulumi_hosting.provider.functions import get_server_status_output as get_server_status_output
    from pulumi_hosting.provider.functions import get_servers as get_servers
    from pulumi_hosting.provider.functions import get_servers_output as get_servers_output
    from pulumi_hosting.provider.functions import get_ssh_keys as get_ssh_keys
    from pulumi_hosting.provider.functions import get_ssh_keys_output as get_ssh_keys_output
    from pulumi_hosting.provider.functions import get_tariff as get_tariff
    from pulumi_hosting.provider.functions import get_tariff_output as get_tariff_output
    from pulumi_hosting.provider.functions import get_tariffs as get_tariffs
    from pulumi_hosting.provider.functions import get_tariffs_output as get_tariffs_output
    from pulumi_hosting.provider.functions import get_topup_info as get_topup_info
    from pulumi_hosting.provider.functions import get_topup_info_output as get_topup_info_output
    from pulumi_hosting.provider.functions import get_transactions as get_transactions
    from pulumi_hosting.provider.functions import get_transactions_output as get_transactions_output
    from pulumi_hosting.provider.functions import get_webhook as get_webhook
    from pulumi_hosting.provider.functions import get_webhook_deliveries as get_webhook_deliveries
    from pulumi_hosting.provider.functions import get_webhook_deliveries_output as get_webhook_deliveries_output
    from pulumi_hosting.provider.functions import get_webhook_delivery as get_webhook_delivery
    from pulumi_hosting.provider.functions import get_webhook_delivery_output as get_webhook_delivery_output
    from pulumi_hosting.provider.functions import get_webhook_events as get_webhook_events
    from pulumi_hosting.provider.functions import get_webhook_events_output as get_webhook_events_output
    from pulumi_hosting.provider.functions import get_webhook_output as get_webhook_output
    from pulumi_hosting.provider.functions import get_webhooks as get_webhooks
    from pulumi_hosting.provider.functions import get_webhooks_output as get_webhooks_output
    from pulumi_hosting.provider.functions import get_zones as get_zones
    from pulumi_hosting.provider.functions import get_zones_output as get_zones_output
_GENERATED = {
    "Server": "pulumi_hosting.provider.classes",
    "Domain": "pulumi_hosting.provider.classes",
    "SshKey": "pulumi_hosting.provider.classes",
    "ServerIp": "pulumi_hosting.provider.classes",
    "Ptr": "pulumi_hosting.provider.classes",
    "WebhookSubscription": "pulumi_hosting.provider.classes",
    "ServerArgs": "pulumi_hosting.provider.args",
    "DomainArgs": "pulumi_hosting.provider.args",
    "SshKeyArgs": "pulumi_hosting.provider.args",
    "ServerIpArgs": "pulumi_hosting.provider.args",
    "PtrArgs": "pulumi_hosting.provider.args",
    "WebhookSubscriptionArgs": "pulumi_hosting.provider.args",
    "get_health": "pulumi_hosting.provider.functions",
    "get_health_output": "pulumi_hosting.provider.functions",
    "get_openapi": "pulumi_hosting.provider.functions",
    "get_openapi_output": "pulumi_hosting.provider.functions",
    "get_me": "pulumi_hosting.provider.functions",
    "get_me_output": "pulumi_hosting.provider.functions",
    "get_account": "pulumi_hosting.provider.functions",
    "get_account_output": "pulumi_hosting.provider.functions",
    "get_balance": "pulumi_hosting.provider.functions",
    "get_balance_output": "pulumi_hosting.provider.functions",
    "get_transactions": "pulumi_hosting.provider.functions",
    "get_transactions_output": "pulumi_hosting.provider.functions",
    "get_topup_info": "pulumi_hosting.provider.functions",
    "get_topup_info_output": "pulumi_hosting.provider.functions",
    "get_invoices": "pulumi_hosting.provider.functions",
    "get_invoices_output": "pulumi_hosting.provider.functions",
    "get_invoice": "pulumi_hosting.provider.functions",
    "get_invoice_output": "pulumi_hosting.provider.functions",
    "get_invoice_pdf": "pulumi_hosting.provider.functions",
    "get_invoice_pdf_output": "pulumi_hosting.provider.functions",
    "get_tariffs": "pulumi_hosting.provider.functions",
    "get_tariffs_output": "pulumi_hosting.provider.functions",
    "get_tariff": "pulumi_hosting.provider.functions",
    "get_tariff_output": "pulumi_hosting.provider.functions",
    "get_os_images": "pulumi_hosting.provider.functions",
    "get_os_images_output": "pulumi_hosting.provider.functions",
    "get_locations": "pulumi_hosting.provider.functions",
    "get_locations_output": "pulumi_hosting.provider.functions",
    "get_zones": "pulumi_hosting.provider.functions",
    "get_zones_output": "pulumi_hosting.provider.functions",
    "get_quote": "pulumi_hosting.provider.functions",
    "get_quote_output": "pulumi_hosting.provider.functions",
    "get_servers": "pulumi_hosting.provider.functions",
    "get_servers_output": "pulumi_hosting.provider.functions",
    "get_server": "pulumi_hosting.provider.functions",
    "get_server_output": "pulumi_hosting.provider.functions",
    "get_server_status": "pulumi_hosting.provider.functions",
    "get_server_status_output": "pulumi_hosting.provider.functions",
    "get_server_refund_quote": "pulumi_hosting.provider.functions",
    "get_server_refund_quote_output": "pulumi_hosting.provider.functions",
    "get_server_ips": "pulumi_hosting.provider.functions",
    "get_server_ips_output": "pulumi_hosting.provider.functions",
    "get_server_ip_quote": "pulumi_hosting.provider.functions",
    "get_server_ip_quote_output": "pulumi_hosting.provider.functions",
    "get_orders": "pulumi_hosting.provider.functions",
    "get_orders_output": "pulumi_hosting.provider.functions",
    "get_order": "pulumi_hosting.provider.functions",
    "get_order_output": "pulumi_hosting.provider.functions",
    "get_ssh_keys": "pulumi_hosting.provider.functions",
    "get_ssh_keys_output": "pulumi_hosting.provider.functions",
    "get_domain_availability": "pulumi_hosting.provider.functions",
    "get_domain_availability_output": "pulumi_hosting.provider.functions",
    "get_domains": "pulumi_hosting.provider.functions",
    "get_domains_output": "pulumi_hosting.provider.functions",
    "get_domain": "pulumi_hosting.provider.functions",
    "get_domain_output": "pulumi_hosting.provider.functions",
    "get_api_keys": "pulumi_hosting.provider.functions",
    "get_api_keys_output": "pulumi_hosting.provider.functions",
    "get_api_key": "pulumi_hosting.provider.functions",
    "get_api_key_output": "pulumi_hosting.provider.functions",
    "get_webhook_events": "pulumi_hosting.provider.functions",
    "get_webhook_events_output": "pulumi_hosting.provider.functions",
    "get_webhooks": "pulumi_hosting.provider.functions",
    "get_webhooks_output": "pulumi_hosting.provider.functions",
    "get_webhook": "pulumi_hosting.provider.functions",
    "get_webhook_output": "pulumi_hosting.provider.functions",
    "get_webhook_deliveries": "pulumi_hosting.provider.functions",
    "get_webhook_deliveries_output": "pulumi_hosting.provider.functions",
    "get_webhook_delivery": "pulumi_hosting.provider.functions",
    "get_webhook_delivery_output": "pulumi_hosting.provider.functions",
}
# --- to here

# Name → module that has it. Each name stands above too, for type checkers.
_HOMES = {
    "Client": "pulumi_hosting.client.client",
    "ApiError": "pulumi_hosting.client.exceptions",
    "BadRequest": "pulumi_hosting.client.exceptions",
    "CallError": "pulumi_hosting.client.exceptions",
    "ConfigurationError": "pulumi_hosting.client.exceptions",
    "Conflict": "pulumi_hosting.client.exceptions",
    "DomainBlocked": "pulumi_hosting.client.exceptions",
    "DomainUnavailable": "pulumi_hosting.client.exceptions",
    "Forbidden": "pulumi_hosting.client.exceptions",
    "HostingError": "pulumi_hosting.client.exceptions",
    "IdempotencyConflict": "pulumi_hosting.client.exceptions",
    "IdempotencyInProgress": "pulumi_hosting.client.exceptions",
    "InsufficientFunds": "pulumi_hosting.client.exceptions",
    "InsufficientScope": "pulumi_hosting.client.exceptions",
    "InvalidInput": "pulumi_hosting.client.exceptions",
    "InvalidPeriod": "pulumi_hosting.client.exceptions",
    "InvalidResponse": "pulumi_hosting.client.exceptions",
    "IpLimitReached": "pulumi_hosting.client.exceptions",
    "MethodNotAllowed": "pulumi_hosting.client.exceptions",
    "NoCapacity": "pulumi_hosting.client.exceptions",
    "NotFound": "pulumi_hosting.client.exceptions",
    "OperationInProgress": "pulumi_hosting.client.exceptions",
    "OsNotAllowed": "pulumi_hosting.client.exceptions",
    "PayloadTooLarge": "pulumi_hosting.client.exceptions",
    "RateLimited": "pulumi_hosting.client.exceptions",
    "RedirectRefused": "pulumi_hosting.client.exceptions",
    "SandboxRefused": "pulumi_hosting.client.exceptions",
    "ServerBlocked": "pulumi_hosting.client.exceptions",
    "ServerError": "pulumi_hosting.client.exceptions",
    "ServiceState": "pulumi_hosting.client.exceptions",
    "TimedOut": "pulumi_hosting.client.exceptions",
    "TransportError": "pulumi_hosting.client.exceptions",
    "Unauthorized": "pulumi_hosting.client.exceptions",
    "Unavailable": "pulumi_hosting.client.exceptions",
    "UnsupportedMediaType": "pulumi_hosting.client.exceptions",
    "UpstreamRejected": "pulumi_hosting.client.exceptions",
    "ValidationFailed": "pulumi_hosting.client.exceptions",
    "WebhookRejected": "pulumi_hosting.client.exceptions",
    "WriteRefused": "pulumi_hosting.client.exceptions",
    "Secret": "pulumi_hosting.api.secrets",
    "UNSET": "pulumi_hosting.client.results",
    "Damaged": "pulumi_hosting.client.results",
    "matching": "pulumi_hosting.client.results",
    "readable": "pulumi_hosting.client.results",
    "whole": "pulumi_hosting.client.results",
    **_GENERATED,
}

__all__ = [*_HOMES]  # names of strings, made from the one list


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # dear to load, and seldom asked for

        return version("pulumi-hosting")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pulumi":
            raise
        raise ImportError(f"{name} needs Pulumi's SDK. Next: pip install 'pulumi-hosting[pulumi]'") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
