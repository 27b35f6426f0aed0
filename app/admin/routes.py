"""Every address of the panel with the right that it needs. A test holds the router equal to this table."""

from app.admin.access import Right
from app.admin.views import checkpoints, controls, entry, feedback, overview, people
from app.admin.visit import Route

ROUTES: tuple[Route, ...] = (
    Route("GET", "", entry.root, Right.PUBLIC),
    Route("GET", "/static/{name}", entry.static, Right.PUBLIC, ("v",)),
    Route("GET", "/login", entry.login_form, Right.PUBLIC, ("next", "saved")),
    Route("POST", "/login", entry.login, Right.PUBLIC, ("login", "password", "next")),
    Route("GET", "/link/{token}", entry.link_form, Right.PUBLIC),
    Route("POST", "/link/{token}", entry.link, Right.PUBLIC, ("login", "password")),
    Route("POST", "/language", entry.language, Right.PUBLIC, ("language", "next")),
    Route("POST", "/logout", entry.logout, Right.SIGNED_IN),
    Route("GET", "/", overview.show, Right.OVERVIEW),
    Route("GET", "/live", overview.live, Right.OVERVIEW, session="peek"),
    Route("GET", "/feedback", feedback.show, Right.REVIEW, feedback.QUERY),
    Route(
        "POST",
        "/feedback/{id}",
        feedback.decide,
        Right.REVIEW,
        (*feedback.FILTERS, "page", "decision", "reason", "new_class", "seen"),
    ),
    Route("GET", "/checkpoints", checkpoints.index, Right.LINEAGE, ("scope", "state", "page")),
    Route("GET", "/checkpoints/{id}", checkpoints.show, Right.LINEAGE),
    Route("POST", "/releases/{id}/rollback", checkpoints.roll_back, Right.RELEASE, ("reason", "checkpoint")),
    Route("GET", "/people", people.index, Right.PEOPLE, ("search", "status", "page")),
    Route("GET", "/people/{id}", people.show, Right.PEOPLE),
    Route("POST", "/people/{id}/resume", people.resume, Right.PEOPLE, ("reason",)),
    Route("GET", "/people/{id}/forget", people.forget_form, Right.PEOPLE),
    Route("POST", "/people/{id}/forget", people.forget, Right.PEOPLE, ("reason", "confirm")),
    Route("GET", "/switches", controls.switches, Right.OVERVIEW),
    Route("POST", "/switches/{name}", controls.turn_switch, Right.SWITCH, ("position", "reason")),
    Route("GET", "/identity", controls.bots, Right.IDENTITY),
    Route("GET", "/identity/{id}", controls.identity, Right.IDENTITY),
    Route(
        "POST",
        "/identity/{id}",
        controls.change_identity,
        Right.IDENTITY,
        ("seen_version", "name", "system_prompt", "facts", "contact", "privacy_notice", "languages", "reason"),
        several=("languages",),
    ),
    Route("GET", "/audit", controls.audit_log, Right.AUDIT, ("actor", "event", "subject", "before")),
)
