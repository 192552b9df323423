/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/routes.h"

#include <string.h>

#include "base/compiler.h"
#include "mgmt/answer_diff.h"
#include "mgmt/json_document.h"
#include "mgmt/metrics.h"
#include "mgmt/page.h"
#include "mgmt/problems.h"
#include "mgmt/tap_routes.h"

/* --- health, readiness, version --------------------------------------------------------------- */

static unsigned health(struct nj__mgmt_request *r, FILE *out)
{
    bool ok = nj__mgmt_is_healthy(r->view);

    fputs(ok ? "ok\n" : "the supervisor does not run\n", out);
    return ok ? 200 : 503;
}

struct readiness {
    FILE *out;
    bool is_ready;
};

static void write_reason(void *ctx, enum nj__problem_kind kind, const char *text)
{
    struct readiness *r = ctx;

    if (!nj__problem_is_grave(kind))
        return;
    r->is_ready = false;
    fprintf(r->out, "%s\n", text);
}

static void write_warning(void *ctx, enum nj__problem_kind kind, const char *text)
{
    const struct readiness *r = ctx;

    if (!nj__problem_is_grave(kind))
        fprintf(r->out, "warning: %s\n", text);
}

/* The problems that do not keep requests away are for people who look. */
static unsigned ready(struct nj__mgmt_request *r, FILE *out)
{
    struct readiness of = {out, true};

    nj__problems_find(r->view, write_reason, &of);
    if (of.is_ready)
        fputs("ready\n", out);
    nj__problems_find(r->view, write_warning, &of);
    return of.is_ready ? 200 : 503;
}

/* As /api/v1/version, for those without a token, too. */
static unsigned version(struct nj__mgmt_request *r, FILE *out)
{
    r->type = NJ__MGMT_JSON;
    return nj__mgmt_write_json(r->view, "version", NULL, out) ? 200 : 500;
}

/* --- metrics and commands ----------------------------------------------------------------------
 */

static unsigned metrics(struct nj__mgmt_request *r, FILE *out)
{
    bool is_openmetrics = strstr(r->accept, "application/openmetrics-text");

    r->type = is_openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                             : "text/plain; version=0.0.4; charset=utf-8";
    nj__metrics_write(r->view, is_openmetrics, out);
    return 200;
}

static unsigned commands(struct nj__mgmt_request *r, FILE *out)
{
    r->type = NJ__MGMT_JSON;
    return nj__mgmt_write_json_commands(out) ? 200 : 500;
}

static unsigned command(struct nj__mgmt_request *r, FILE *out)
{
    r->type = NJ__MGMT_JSON;
    if (nj__mgmt_write_json(r->view, r->rest, r->query, out))
        return 200;
    char names[64];
    if (!nj__mgmt_parameters_of(r->rest, names, sizeof names)) {
        fputs("{\"error\":\"no such command: GET /api/v1 lists them\"}\n", out);
        return 404;
    }
    fprintf(out, "{\"error\":\"invalid parameters, or no memory: %s takes %s\"}\n", r->rest, names);
    return 400;
}

/* Its path has another method, too. */
static unsigned limits(struct nj__mgmt_request *r, FILE *out)
{
    r->rest = "limits";
    return command(r, out);
}

/* --- the live page --------------------------------------------------------------------------- */

static unsigned page(struct nj__mgmt_request *r, FILE *out)
{
    r->type = "text/html; charset=utf-8";
    r->policy = nj__mgmt_page_policy;
    fwrite(nj__mgmt_page, 1, nj__mgmt_page_bytes, out);
    return 200;
}

static unsigned events(struct nj__mgmt_request *r, FILE *out)
{
    if (nj__mgmt_events_subscribe(r->events, r->view, &r->stream)) {
        r->type = "text/event-stream";
        return 200;
    }
    r->type = NJ__MGMT_JSON;
    fputs("{\"error\":\"too many clients have events, or no memory\"}\n", out);
    return 503;
}

/* --- changes ---------------------------------------------------------------------------------- */

/* The policy of this process has been handed over: what was changed now would be lost. */
static bool refuses_policy(struct nj__mgmt_request *r, FILE *out)
{
    if (!r->view->is_yielding || !atomic_load(r->view->is_yielding))
        return false;
    r->type = NJ__MGMT_JSON;
    fputs("{\"error\":\"another process takes new connections: ask it again, on a new connection\"}"
          "\n",
          out);
    return true;
}

static unsigned reload(struct nj__mgmt_request *r, FILE *out)
{
    if (refuses_policy(r, out))
        return 503;
    r->type = NJ__MGMT_JSON;
    return nj__mgmt_reload(r->view, out);
}

static unsigned diff(struct nj__mgmt_request *r, FILE *out)
{
    r->type = NJ__MGMT_JSON;
    return nj__mgmt_write_diff(r->view, out);
}

static unsigned reopen_log(struct nj__mgmt_request *r, FILE *out)
{
    r->type = NJ__MGMT_JSON;
    return nj__mgmt_reopen_log(r->view, out);
}

/* Answers a request whose body is a text that says what to change. */
static unsigned change(struct nj__mgmt_request *r, FILE *out,
                       unsigned (*by)(const struct nj_mgmt_view *v, const char *what, FILE *out))
{
    r->type = NJ__MGMT_JSON;
    if (strlen(r->body) == r->n_body)
        return by(r->view, r->body, out);
    fputs("{\"error\":\"the body has a zero byte\"}\n", out);
    return 422;
}

static unsigned change_limits(struct nj__mgmt_request *r, FILE *out)
{
    return refuses_policy(r, out) ? 503 : change(r, out, nj__mgmt_change_limits);
}

static unsigned end_transfers(struct nj__mgmt_request *r, FILE *out)
{
    return change(r, out, nj__mgmt_end_transfers);
}

static unsigned block(struct nj__mgmt_request *r, FILE *out)
{
    return refuses_policy(r, out) ? 503 : change(r, out, nj__mgmt_block_network);
}

static unsigned unblock(struct nj__mgmt_request *r, FILE *out)
{
    return refuses_policy(r, out) ? 503 : change(r, out, nj__mgmt_unblock_network);
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct nj__mgmt_route routes[] = {
    {"/health", "GET", NJ__MGMT_OPEN, health},
    {"/ready", "GET", NJ__MGMT_OPEN, ready},
    {"/version", "GET", NJ__MGMT_LOCAL, version},
    {"/metrics", "GET", NJ__MGMT_OPEN, metrics},
    {"/", "GET", NJ__MGMT_LOCAL, page},
    {"/api/v1/events", "GET", NJ__MGMT_READ, events},
    {"/api/v1", "GET", NJ__MGMT_READ, commands},
    {"/api/v1/*", "GET", NJ__MGMT_READ, command},
    {"/api/v1/limits", "GET", NJ__MGMT_READ, limits},
    {"/api/v1/diff", "GET", NJ__MGMT_READ, diff},
    {"/api/v1/limits", "POST", NJ__MGMT_WRITE, change_limits},
    {"/api/v1/transfers/end", "POST", NJ__MGMT_WRITE, end_transfers},
    {"/api/v1/block", "POST", NJ__MGMT_WRITE, block},
    {"/api/v1/unblock", "POST", NJ__MGMT_WRITE, unblock},
    {"/api/v1/reload", "POST", NJ__MGMT_WRITE, reload},
    {"/api/v1/log/reopen", "POST", NJ__MGMT_WRITE, reopen_log},
    {"/api/v1/capture", "GET", NJ__MGMT_WRITE, nj__route_capture},
    {"/api/v1/capture/end", "POST", NJ__MGMT_WRITE, nj__route_capture_end},
    {"/api/v1/trace", "GET", NJ__MGMT_WRITE, nj__route_trace},
    {"/api/v1/trace/end", "POST", NJ__MGMT_WRITE, nj__route_trace_end},
};

/* Length of the path without '*'. */
static size_t length(const struct nj__mgmt_route *route)
{
    size_t n = strlen(route->path);

    return n - (route->path[n - 1] == '*');
}

static bool has_path(const struct nj__mgmt_route *route, const char *path)
{
    size_t n = length(route);

    return route->path[n] == '*' ? strncmp(path, route->path, n) == 0 && !strchr(path + n, '/')
                                 : strcmp(path, route->path) == 0;
}

static bool has_method(const struct nj__mgmt_route *route, const char *method)
{
    return strcmp(route->method, strcmp(method, "HEAD") == 0 ? "GET" : method) == 0;
}

static void allow(const char *method, char allowed[NJ__MGMT_ALLOWED_BYTES])
{
    size_t at = strlen(allowed);

    snprintf(allowed + at, NJ__MGMT_ALLOWED_BYTES - at, "%s%s", at > 0 ? ", " : "",
             strcmp(method, "GET") == 0 ? "GET, HEAD" : method);
}

/* Routes of the path itself come before those of its beginning. */
const struct nj__mgmt_route *nj__mgmt_route_find(const char *path, const char *method,
                                                 char allowed[NJ__MGMT_ALLOWED_BYTES])
{
    const struct nj__mgmt_route *found = NULL;
    size_t longest = 0;

    allowed[0] = '\0';
    for (size_t i = 0; i < NJ_ARRAY_LEN(routes); i++)
        if (has_path(&routes[i], path) && strlen(routes[i].path) > longest)
            longest = strlen(routes[i].path);
    for (size_t i = 0; i < NJ_ARRAY_LEN(routes); i++) {
        if (!has_path(&routes[i], path) || strlen(routes[i].path) < longest)
            continue;
        if (has_method(&routes[i], method))
            found = &routes[i];
        allow(routes[i].method, allowed);
    }
    return found;
}

const char *nj__mgmt_route_rest(const struct nj__mgmt_route *route, const char *path)
{
    size_t n = length(route);

    return route->path[n] == '*' ? path + n : "";
}

bool nj__mgmt_route_is_slow(const struct nj__mgmt_route *route)
{
    return route->answer == reload || route->answer == diff;
}
