/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/http_exchange.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/units.h"
#include "log/address_text.h"
#include "mgmt/change_log.h"

#define TOO_LARGE    413u /* its name differs between versions of libmicrohttpd */
/* Bytes of responses that the clients of a place have not taken; small responses are sent in any
 * case. */
#define UNSENT_MAX   (32u << 20)
#define SMALL        (64u << 10)
#define STREAM_BYTES (16u << 10) /* a stream is asked for at a time */

/* --- responses -------------------------------------------------------------------------------- */

struct reply {
    unsigned status;
    const char *type;
    const char *field, *value; /* one more field; NULL: none */
};

static enum MHD_Result send_response(struct nj__mgmt_exchange *e, struct MHD_Connection *c,
                                     const struct reply *r, struct MHD_Response *response)
{
    bool ok = MHD_add_response_header(response, "Content-Type", r->type) == MHD_YES &&
              MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES &&
              MHD_add_response_header(response, "Cache-Control", "no-store") == MHD_YES &&
              (!r->field || MHD_add_response_header(response, r->field, r->value) == MHD_YES);
    enum MHD_Result rc = ok ? MHD_queue_response(c, r->status, response) : MHD_NO;
    e->is_answered = rc == MHD_YES;
    MHD_destroy_response(response);
    return rc;
}

/* Frees `body`, of malloc(3). */
static enum MHD_Result send_body(struct nj__mgmt_exchange *e, struct MHD_Connection *c,
                                 const struct reply *r, char *body, size_t n)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(n, body, MHD_RESPMEM_MUST_FREE);

    if (response)
        return send_response(e, c, r, response);
    free(body);
    return MHD_NO;
}

static void suspend(struct nj__mgmt_exchange *e)
{
    e->is_suspended = true;
    MHD_suspend_connection(e->connection);
}

/* Without the suspension libmicrohttpd would ask for bytes all the time. */
static ssize_t read_stream(void *exchange, uint64_t at, char *to, size_t n)
{
    struct nj__mgmt_exchange *e = exchange;

    if (e->is_cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    ssize_t n_read = e->stream.read(e->stream.of, to, n);
    if (n_read < 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    e->has_taken = true;
    if (n_read == 0)
        suspend(e);
    return n_read;
}

/* nj__mgmt_exchange_end() ends the stream. */
static enum MHD_Result send_stream(struct nj__mgmt_exchange *e, struct MHD_Connection *c,
                                   const struct reply *r)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BYTES, read_stream, e, NULL);

    e->connection = c;
    return response ? send_response(e, c, r, response) : MHD_NO;
}

static enum MHD_Result refuse_with(struct nj__mgmt_exchange *e, struct MHD_Connection *c,
                                   unsigned status, const char *text, const char *field,
                                   const char *value)
{
    char *body = strdup(text);

    return body ? send_body(e, c, &(struct reply){status, NJ__MGMT_TEXT, field, value}, body,
                            strlen(body))
                : MHD_NO;
}

static enum MHD_Result refuse(struct nj__mgmt_exchange *e, struct MHD_Connection *c,
                              unsigned status, const char *text)
{
    return refuse_with(e, c, status, text, NULL, NULL);
}

static const char *field(struct MHD_Connection *c, const char *name)
{
    const char *value = MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);

    return value ? value : "";
}

static enum MHD_Result answer(struct nj__mgmt_exchange *e, struct nj__mgmt_answerer *a,
                              struct MHD_Connection *c, const struct nj__mgmt_route *route,
                              const char *path)
{
    struct nj__mgmt_request r = {
        .view = a->view,
        .events = &a->events,
        .rest = nj__mgmt_route_rest(route, path),
        .query = e->query,
        .accept = field(c, "Accept"),
        .body = e->body ? e->body : "",
        .n_body = e->n_body,
        .type = NJ__MGMT_TEXT,
    };
    struct nj__mgmt_answer made;

    if (e->is_cut)
        return MHD_NO;
    e->answerer = a;
    e->connection = c;
    if (!nj__mgmt_route_is_slow(route))
        made = nj__mgmt_route_run(route, &r);
    else if (!nj__mgmt_slow_ask(a->slow, e, route, &r, &made)) {
        suspend(e); /* libmicrohttpd calls nj__mgmt_exchange_step() again when it is resumed */
        return MHD_YES;
    }
    if (route->access == NJ__MGMT_WRITE)
        nj__mgmt_log_change(c, e->place == NJ__MGMT_UNIX, route->method, path,
                            r.n_body > 0 ? r.body : r.query, made.status);
    e->stream = r.stream;
    if (r.stream.read) {
        free(made.text);
        return send_stream(e, c, &(struct reply){.status = made.status, .type = r.type});
    }
    if (!made.text)
        return made.status == MHD_HTTP_OK && route->access == NJ__MGMT_WRITE
                   ? refuse(e, c, MHD_HTTP_INTERNAL_SERVER_ERROR,
                            "the change was made, but there is no memory for the answer\n")
                   : MHD_NO;
    if (made.n > SMALL && a->n_unsent[e->place] + made.n > UNSENT_MAX) {
        free(made.text);
        return refuse_with(e, c, MHD_HTTP_SERVICE_UNAVAILABLE,
                           "other clients have not taken their responses\n", "Retry-After", "60");
    }
    e->n_unsent = made.n;
    a->n_unsent[e->place] += made.n;
    const struct reply reply = {made.status, r.type, r.policy ? "Content-Security-Policy" : NULL,
                                r.policy};
    return send_body(e, c, &reply, made.text, made.n);
}

/* --- who may ---------------------------------------------------------------------------------- */

bool nj__mgmt_is_local_host(const char *host)
{
    size_t n = strlen(host);
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL, *port = strchr(host, ':');
    struct nj_addr ip;
    uint64_t number;

    if (end && !nj_address_parse(host + 1, (size_t)(end - host) - 1, &ip))
        return false;
    if (end && !end[1])
        return true;
    port = end ? end + 1 : port;
    if (port && (port[0] != ':' || !nj_parse_decimal(port + 1, &number) || number > UINT16_MAX))
        return false;
    size_t n_name = port ? (size_t)(port - host) : n;
    return end || nj_address_parse(host, n_name, &ip) ||
           (n_name == strlen("localhost") && strncasecmp(host, "localhost", n_name) == 0);
}

bool nj__mgmt_is_same_origin(const char *origin, const char *host)
{
    static const char *const scheme[] = {"http://", "https://"};

    for (size_t i = 0; i < NJ_ARRAY_LEN(scheme); i++) {
        size_t n = strlen(scheme[i]);
        if (strncasecmp(origin, scheme[i], n) == 0)
            return strcasecmp(origin + n, host) == 0;
    }
    return false;
}

/* A page of another server, in a browser that reaches this one, by a tunnel or here: browsers say
 * so. Programs send neither field. */
static bool is_of_another_page(struct MHD_Connection *c)
{
    const char *origin = field(c, "Origin"), *site = field(c, "Sec-Fetch-Site");

    return (site[0] && strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0) ||
           (origin[0] && !nj__mgmt_is_same_origin(origin, field(c, "Host")));
}

/* A refusal that the head alone decides; NULL: none. */
static const char *why_forbidden(const struct nj__mgmt_exchange *e,
                                 const struct nj__mgmt_answerer *a, struct MHD_Connection *c,
                                 const struct nj__mgmt_route *route)
{
    const char *host = field(c, "Host"); /* requests of HTTP/1.0 may have none */

    if (e->place != NJ__MGMT_ELSEWHERE && host[0] && !nj__mgmt_is_local_host(host))
        return "Host must be an address or localhost\n";
    if (route->access >= NJ__MGMT_READ && is_of_another_page(c))
        return "a page of another server asks for this: Origin must be that of Host\n";
    if (route->access == NJ__MGMT_OPEN || e->place == NJ__MGMT_UNIX)
        return NULL;
    if (e->place == NJ__MGMT_ELSEWHERE)
        return "only for loopback addresses and the Unix socket\n";
    if (route->access != NJ__MGMT_LOCAL && !a->tokens.read.is_set && !a->tokens.write.is_set)
        return "the server has no tokens (token, read_token): only for the Unix socket\n";
    return NULL;
}

static bool needs_token(const struct nj__mgmt_exchange *e, const struct nj__mgmt_route *route)
{
    return e->place == NJ__MGMT_LOOPBACK && route->access >= NJ__MGMT_READ;
}

/* Refuses what the token decides. True: it was refused, with *rc. */
static bool refuse_token(struct nj__mgmt_exchange *e, const struct nj__mgmt_answerer *a,
                         struct MHD_Connection *c, const struct nj__mgmt_route *route,
                         enum MHD_Result *rc)
{
    enum nj_mgmt_right right = nj__mgmt_tokens_right(&a->tokens, field(c, "Authorization"));

    if (right == NJ_MGMT_NOTHING)
        *rc = refuse_with(e, c, MHD_HTTP_UNAUTHORIZED, "a token is needed\n", "WWW-Authenticate",
                          "Bearer realm=\"nightjar\"");
    else if (right == NJ_MGMT_READ && route->access == NJ__MGMT_WRITE)
        *rc = refuse_with(e, c, MHD_HTTP_FORBIDDEN, "this token permits no changes\n",
                          "WWW-Authenticate",
                          "Bearer realm=\"nightjar\", error=\"insufficient_scope\"");
    else
        return false;
    return true;
}

static enum MHD_Result count_length(void *n, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    *(uint32_t *)n +=
        strcasecmp(name, "Content-Length") == 0 || strcasecmp(name, "Transfer-Encoding") == 0;
    return MHD_YES;
}

/* Two lengths: another reader of this connection may find another end of the body (RFC 9112
 * section 6.3). */
static bool has_two_lengths(struct MHD_Connection *c)
{
    uint32_t n = 0;

    MHD_get_connection_values(c, MHD_HEADER_KIND, count_length, &n);
    return n > 1;
}

/* Refuses what the head alone decides. `allowed`: of nj__mgmt_route_find(). */
static bool refuse_head(struct nj__mgmt_exchange *e, const struct nj__mgmt_answerer *a,
                        struct MHD_Connection *c, const struct nj__mgmt_route *route,
                        const char *allowed, enum MHD_Result *rc)
{
    const char *forbidden = route ? why_forbidden(e, a, c, route) : NULL;
    uint64_t n_body = 0;

    if (has_two_lengths(c))
        *rc = refuse_with(e, c, MHD_HTTP_BAD_REQUEST,
                          "more than one of Content-Length and Transfer-Encoding\n", "Connection",
                          "close");
    else if (!route && allowed[0])
        *rc = refuse_with(e, c, MHD_HTTP_METHOD_NOT_ALLOWED, "not with this method\n", "Allow",
                          allowed);
    else if (!route)
        *rc = refuse(e, c, MHD_HTTP_NOT_FOUND, "no such path\n");
    else if (forbidden)
        *rc = refuse(e, c, MHD_HTTP_FORBIDDEN, forbidden);
    else if (needs_token(e, route) && refuse_token(e, a, c, route, rc))
        return true;
    else if (e->is_too_long)
        *rc = refuse(e, c, MHD_HTTP_URI_TOO_LONG, "the query is too long\n");
    else if (nj_parse_decimal(field(c, "Content-Length"), &n_body) && n_body > NJ__MGMT_BODY_MAX)
        *rc = refuse(e, c, TOO_LARGE, "the body is too large\n");
    else
        return false;
    return true;
}

/* --- the request ------------------------------------------------------------------------------ */

void nj__mgmt_exchange_begin(struct nj__mgmt_exchange *e, const char *url)
{
    const char *query = strchr(url, '?');
    size_t n = query ? strlen(query + 1) : 0;

    e->is_too_long = n > NJ__MGMT_QUERY_MAX;
    if (query && !e->is_too_long)
        memcpy(e->query, query + 1, n + 1);
    else
        e->query[0] = '\0';
}

void nj__mgmt_exchange_end(struct nj__mgmt_exchange *e)
{
    if (e->answerer) {
        e->answerer->n_unsent[e->place] -= e->n_unsent;
        nj__mgmt_slow_forget(e->answerer->slow, e);
    }
    if (e->stream.read)
        e->stream.end(e->stream.of);
    free(e->body);
    *e = (struct nj__mgmt_exchange){.place = e->place};
}

bool nj__mgmt_exchange_runs(const struct nj__mgmt_exchange *e)
{
    return e->answerer && nj__mgmt_slow_has(e->answerer->slow, e);
}

bool nj__mgmt_exchange_has_more(const struct nj__mgmt_exchange *e)
{
    return !e->stream.read || e->is_cut || !e->stream.has_more || e->stream.has_more(e->stream.of);
}

void nj__mgmt_exchange_resume(struct nj__mgmt_exchange *e)
{
    if (!e->is_suspended || nj__mgmt_exchange_runs(e))
        return;
    e->is_suspended = false;
    MHD_resume_connection(e->connection);
}

/* Of a body that is too large the rest is read and forgotten: libmicrohttpd takes no response in
 * its middle. */
static bool take_body(struct nj__mgmt_exchange *e, const char *data, size_t n)
{
    if (e->n_body + n > NJ__MGMT_BODY_MAX)
        e->is_too_long = true;
    if (e->is_too_long)
        return true;
    if (e->n_body + n + 1 > e->n_room) {
        size_t n_room = 2 * (e->n_body + n + 1);
        char *body = realloc(e->body, n_room);
        if (!body)
            return false;
        e->body = body;
        e->n_room = n_room;
    }
    memcpy(e->body + e->n_body, data, n);
    e->n_body += n;
    e->body[e->n_body] = '\0';
    return true;
}

static bool has_body(struct MHD_Connection *c)
{
    const char *length = field(c, "Content-Length");

    return field(c, "Transfer-Encoding")[0] || (length[0] && strcmp(length, "0") != 0);
}

enum MHD_Result nj__mgmt_exchange_step(struct nj__mgmt_exchange *e, struct nj__mgmt_answerer *a,
                                       struct MHD_Connection *c, const char *path,
                                       const char *method, const char *data, size_t *n_data)
{
    char allowed[NJ__MGMT_ALLOWED_BYTES];
    const struct nj__mgmt_route *route = nj__mgmt_route_find(path, method, allowed);
    bool is_first = !e->has_head;
    enum MHD_Result rc = MHD_YES;

    e->has_head = true;
    if (*n_data > 0) {
        bool ok = e->is_answered || take_body(e, data, *n_data);
        *n_data = 0;
        return ok ? MHD_YES : MHD_NO;
    }
    /* A response before the end of the request closes the connection. */
    if (e->is_answered || (is_first && !has_body(c)))
        return MHD_YES;
    bool is_checked = e->is_checked;
    e->is_checked = true;
    if (!is_checked && refuse_head(e, a, c, route, allowed, &rc))
        return rc;
    if (is_first)
        return MHD_YES;
    if (e->is_too_long)
        return refuse(e, c, TOO_LARGE, "the body is too large\n");
    return answer(e, a, c, route, path);
}
