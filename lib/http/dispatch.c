/* SPDX-License-Identifier: BSD-3-Clause */
/* Dispatches a request to the handler of a route, or to the file server at "/". Targets and methods
 * that neither has are refused here: 400, 404, 405, 414, 501 (RFC 9110 15.5, 15.6.2). */
#include "http/dispatch.h"

#include "base/compiler.h"
#include "base/limits.h"
#include "http/handlers/route_table.h"
#include "http/http_options.h"
#include "http/request_admission.h"
#include "http/response_head.h"
#include "site/site_table.h"
#include "telem/counters_http.h"

/* --- requests that nothing can answer --- */

/* Status for a method that the target does not allow: 501 if the server does not know it at all,
 * which are the methods of RFC 9110 9.3 and RFC 5789, and those of routes (RFC 9110 9.1). */
static uint16_t refuse_method(const struct nj_exchanges *exchanges, struct nj_str method)
{
    static const struct nj_str known[] = {
        NJ_STR_INIT("GET"),     NJ_STR_INIT("HEAD"),    NJ_STR_INIT("POST"),
        NJ_STR_INIT("PUT"),     NJ_STR_INIT("DELETE"),  NJ_STR_INIT("PATCH"),
        NJ_STR_INIT("CONNECT"), NJ_STR_INIT("OPTIONS"), NJ_STR_INIT("TRACE"),
    };

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(known); i++)
        if (nj_str_eq(method, known[i]))
            return 405;
    return exchanges && nj_routes_have_method(nj_exchanges_routes(exchanges), method) ? 405 : 501;
}

/* Error status of a target that is no file's, whatever the method, or 0. A redirect contains the
 * query, and a request that waits stores it, so the target is bounded. */
static uint16_t check_target(const struct nj_request_head *head, const struct nj_target *target)
{
    if (target->result == NJ_PATH_BAD || target->result == NJ_PATH_ASTERISK)
        return 400;
    bool is_too_long = target->result == NJ_PATH_TOO_LONG || head->path.n_bytes >= NJ_PATH_MAX;
    return is_too_long ? 414 : 0;
}

/* Error status of a request for a file, or 0. OPTIONS asks what is possible with any file, not
 * which exist. */
static uint16_t check_file_request(const struct nj_txn *t, const struct nj_request_head *head,
                                   const struct nj_target *target)
{
    uint16_t status = check_target(head, target);

    switch ((enum nj_method)t->method) {
    case NJ_METHOD_OPTIONS:
        return target->result == NJ_PATH_ASTERISK ? 0 : status;
    case NJ_METHOD_GET:
    case NJ_METHOD_HEAD:
        return !status && target->result == NJ_PATH_HIDDEN ? 404 : status;
    case NJ_METHOD_OTHER:
        break;
    }
    return status && head->path.n_bytes > 0 ? status : 405; /* CONNECT has no path to reject */
}

/* Error status where no files are served. A request without a path, such as CONNECT, is not
 * malformed. */
static uint16_t status_without_files(const struct nj_exchanges *exchanges,
                                     const struct nj_request_head *head,
                                     const struct nj_target *target)
{
    if (refuse_method(exchanges, head->method) == 501)
        return 501;
    if (target->result == NJ_PATH_TOO_LONG)
        return 414;
    return target->result == NJ_PATH_BAD && head->path.n_bytes > 0 ? 400 : 404;
}

/* --- who answers --- */

static void serve_file(struct nj_file_server *site, const struct nj_exchanges *exchanges,
                       struct nj_txn *t, const struct nj_request_head *head,
                       const struct nj_target *target)
{
    uint64_t body_max = t->set->options->body_max;
    uint16_t status;

    if (body_max > 0 && head->content_length > body_max) {
        nj_respond_error(t, 413, (struct nj_field){0});
    } else if (nj_unlikely(status = check_file_request(t, head, target))) {
        status = status == 405 ? refuse_method(exchanges, head->method) : status;
        nj_file_server_send_error(site, t, status, *t->set->now);
    } else {
        nj_file_server_serve(site, t, head, target, *t->set->now);
    }
}

/* A handler that the file mounts comes before the routes of the program. */
static enum nj_route_result find_route(const struct nj_routes *routes, const struct nj_txn *t,
                                       struct nj_str method, struct nj_str path,
                                       struct nj_route_match *out)
{
    if (nj_likely(!t->rules || t->rules->handler == 0 || path.n_bytes == 0))
        return nj_routes_find(routes, method, path, out);
    out->n_mount = t->rules->handler_prefix.n_bytes;
    return nj_routes_find_named(routes, t->rules->handler - 1, method, out);
}

static struct nj_exchange *serve_route(struct nj_exchanges *exchanges, struct nj_txn *t,
                                       const struct nj_route_match *route,
                                       const struct nj_request_head *head,
                                       const struct nj_target *target, uint32_t n_conn_tasks)
{
    if (nj_unlikely(n_conn_tasks >=
                    NJ_CONN_TASKS_MAX)) { /* streams were reset while their handlers still run */
        nj_txn_report_abuse(t, NJ_C_conn_tasks_full);
        t->framing->reset(t->stream, NJ_RESET_REFUSED);
        return NULL;
    }
    if (nj_txn_deny_if_over_share(t, nj_exchanges_slots_left(exchanges)))
        return NULL;
    return nj_exchange_begin(exchanges, route, head, target->path, t);
}

struct nj_exchange *nj_http_dispatch(struct nj_file_server *site, struct nj_exchanges *exchanges,
                                     struct nj_txn *t, const struct nj_request_head *head,
                                     const struct nj_target *target, uint32_t n_conn_tasks)
{
    struct nj_route_match match;

    if (!exchanges) {
        serve_file(site, exchanges, t, head, target);
        return NULL;
    }
    switch (find_route(nj_exchanges_routes(exchanges), t, head->method, target->path, &match)) {
    case NJ_ROUTE_NONE:
        if (t->set->options->no_files)
            nj_respond_error(t, status_without_files(exchanges, head, target),
                             (struct nj_field){0});
        else
            serve_file(site, exchanges, t, head, target);
        return NULL;
    case NJ_ROUTE_BAD_METHOD:
        nj_respond_error(t, refuse_method(exchanges, head->method),
                         (struct nj_field){NJ_STR("allow"), match.allow});
        return NULL;
    case NJ_ROUTE_FOUND:
        break;
    }
    return serve_route(exchanges, t, &match, head, target, n_conn_tasks);
}
