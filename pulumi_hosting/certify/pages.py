"""Pages of lists, and the limits, which come last: they use up the windows."""

from collections.abc import Callable
from typing import Any

from pulumi_hosting.certify import shapes as s
from pulumi_hosting.certify.answers import HttpAnswer
from pulumi_hosting.certify.operations import PAGED
from pulumi_hosting.certify.sandbox import choose
from pulumi_hosting.certify.session import LIMITS, TEST, Exchanges, Skip

SERVERS = 3
PAGES = 6
FLOOD = 150
"""A limit above this is not tried."""


def paging(run: Exchanges) -> None:
    ids = _servers(run) if TEST in run.keys else []
    try:
        for path in PAGED:
            run.part("pages.", _bounds, run, path)
            run.part("pages.", _walk, run, path, run.reader)
        if ids:
            found = [entry["id"] for entry in _walk(run, "/servers", TEST) if entry.get("id") in ids]
            run.same("pages.newest-first", "sandbox servers", found, ids[::-1], run.get("/servers?limit=3"))
    finally:
        for number, id in enumerate(ids):
            if run.call("DELETE", f"/servers/{id}", TEST, step=f"page {number} deletion").ok:
                run.removed(f"/servers/{id}")


def _servers(run: Exchanges) -> list[int]:
    """Sandbox servers, so that there is something to walk."""
    tariff, image = choose(run)
    ids = []
    for number in range(SERVERS):
        body = {"tariff_id": tariff["id"], "os": image, "name": f"certify-{run.id}-{number}", "months": 1}
        made = run.call("POST", "/servers", TEST, json_body=body, step=f"page {number}")
        if made.ok:
            ids.append(int(made.body["server"]["id"]))
            run.made(f"sandbox server {ids[-1]}", "DELETE", f"/servers/{ids[-1]}", TEST)
        run.clock.sleep(1)
    return ids


def _bounds(run: Exchanges, path: str) -> None:
    for limit in ("0", "101", "-1", "certify"):
        run.status("pages.limit", run.get(f"{path}?limit={limit}"), 400)
    most = run.read("pages.limit", f"{path}?limit=100")
    first = run.get(path)
    run.same("pages.limit", "the number without a limit", len(first.items), min(len(most.items), 50), first)
    run.shape("pages.shape", first.data, s.PAGE, first)
    for cursor in ("certify", "e30", "AAAA.BBBB"):
        run.refused("pages.cursor", 400, f"GET {path}?cursor={cursor}", code="invalid_cursor")


def _walk(run: Exchanges, path: str, who: str) -> list[dict[str, Any]]:
    """The first pages of one object each, compared with one large page."""
    whole = run.get(f"{path}?limit=100", who)
    if not whole.ok:
        return []
    pages, found = 0, list[dict[str, Any]]()
    cursor: str | None = None
    page: HttpAnswer | None = None
    while True:
        page = run.get(f"{path}?limit=1" + (f"&cursor={cursor}" if cursor else ""), who)
        run.status("pages.shape", page, 200, shape=s.PAGE)
        if not cursor:
            run.expect("pages.limit", len(page.items) <= 1, f"{len(page.items)} with limit=1", page)
        pages, found = pages + 1, found + page.items
        if not cursor and page.body.get("next_cursor"):
            _bound_cursor(run, path, str(page.body["next_cursor"]), who)
        cursor = page.body.get("next_cursor")
        if not cursor or pages >= PAGES:
            break
    ids = [entry.get("id", entry.get("invoice_id")) for entry in found]
    all_ids = [entry.get("id", entry.get("invoice_id")) for entry in whole.items]
    run.same("pages.no-gaps", f"{path} page by page", ids, all_ids[: max(pages, len(ids))], page)
    run.expect("pages.no-gaps", len(set(ids)) == len(ids), f"{path} has one twice", page)
    if not cursor:
        run.same("pages.last", f"the number of pages of {path}", pages, max(len(all_ids), 1), page)
    times = [str(entry["created_at"]) for entry in whole.items if entry.get("created_at")]
    run.expect("pages.newest-first", times == sorted(times, reverse=True), f"{path}: not in order", whole)
    return found


def _bound_cursor(run: Exchanges, path: str, cursor: str, who: str) -> None:
    middle = len(cursor) // 2
    changed = cursor[:middle] + ("A" if cursor[middle] != "A" else "B") + cursor[middle + 1 :]
    call, code = f"GET {path}?limit=1", "invalid_cursor"
    run.refused("pages.cursor", 400, f"{call}&cursor={changed}", who, code=code)
    if PAGED[path]:
        filtered = f"{call}&{PAGED[path]}&cursor={cursor}"
        run.refused("pages.cursor-filters", 400, filtered, who, code=code)


def limits(run: Exchanges) -> None:
    """Use up a window of each bucket: with the test key, which disturbs no one."""
    if TEST not in run.keys:
        raise Skip("no test key was given")
    tariffs = run.get("/catalog/tariffs").items
    if tariffs:

        def separate() -> None:
            run.status("limits.separate", run.get("/me", flood=True), 200)

        _flood(run, True, f"/catalog/quote?tariff_id={tariffs[0].get('id')}&months=1", separate)

    def per_key() -> None:
        for who in run.keys:
            if who != TEST:
                run.status("limits.per-key", run.get("/me", who, flood=True), 200)

    _flood(run, False, "/me", per_key)
    run.clock.sleep(61)
    refused, passed = None, -1
    for passed in range(45):  # noqa: B007  # used after the loop
        answer = run.get(
            "/me", None, headers={"Authorization": "Bearer vk_test_certify_no_such_key"}, flood=True
        )
        if answer.status == 429:
            refused = answer
            break
    run.expect(
        "limits.invalid-keys",
        refused is not None and refused.is_(429, "rate_limited"),
        "45 requests with an invalid key were not limited",
        answer,
    )
    run.expect("limits.invalid-keys", passed >= 30, f"{passed} requests with an invalid key, not 30", answer)


def _flood(run: Exchanges, bucket: bool, path: str, meanwhile: Callable[[], None]) -> None:
    """Send until it is refused. ``meanwhile`` sees what is answered then."""
    name, check = ("expensive", "limits.expensive") if bucket else ("normal", "limits.normal")
    limit = run.limits.get((TEST, bucket), LIMITS[bucket])
    if limit > FLOOD:
        return
    first = run.get("/me")
    run.clock.sleep(min(max(run.until_reset(first), 0.0) + 1, 62.0))
    passed = 0
    if bucket:  # requests of the other bucket, which leave this one whole
        others = [run.get("/me", flood=True) for _ in range(LIMITS[True] + 1)]
        ahead = run.until_reset(others[0])
        words = f"a window that has just begun ends in {ahead:.0f} s, not 60"
        run.expect("limits.window", 50 <= ahead <= 62, words, others[0])
    for _ in range(limit + 1):
        answer = run.get(path, flood=True)
        if answer.status == 429:
            break
        passed += 1
    # A window can end on the way: then more are allowed.
    reached = answer.status == 429
    words = f"{passed} requests were answered in the {name} bucket, not {limit}"
    run.expect(check, reached and passed == limit, words, answer)
    if not reached:
        return
    run.status("limits.refusal", answer, 429, code="rate_limited")
    run.same("limits.refusal", "details.bucket", answer.details.get("bucket"), name, answer)
    run.same("limits.refusal", "details.limit", answer.details.get("limit", limit), limit, answer)
    meanwhile()
    wait = answer.headers.get("retry-after", "")
    if run.expect("limits.retry-after", wait.isdigit() and 0 < int(wait) <= 61, f"it is {wait!r}", answer):
        run.clock.sleep(int(wait) + 1)
        run.read("limits.window", path, flood=True)
