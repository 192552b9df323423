/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/tap_routes.h"

#include <string.h>

#include "base/units.h"
#include "mgmt/blocks.h"
#include "mgmt/capture.h"
#include "mgmt/trace.h"

#define VALUE_BYTES 64u

/* Of captures and traces. */
struct options {
    struct nj_net of;
    int port;
    uint32_t snaplen;
    uint64_t seconds, n_max;
};

/* What a parameter's value has to be. */
#define NETWORK "client: expected an address or a network, without bits after its prefix"
#define PORT    "port: expected the number of a port, as in /api/v1/port"
#define SNAPLEN "snaplen: expected a number of bytes from 14 to 262144, or headers"
#define SECONDS "seconds: expected a number from 1 to 600"
#define COUNT   "packets, requests: expected a number from 1 on, at most 100000000 or 10000000"

/* NULL: it is valid. */
static const char *read_one(struct options *o, const char *key, const char *value,
                            const char *count, uint64_t count_max)
{
    uint64_t n = 0;
    bool is_number = nj_parse_decimal(value, &n);

    if (strcmp(key, "client") == 0)
        return nj_mgmt_parse_network(value, strlen(value), &o->of) &&
                       nj_net_has(&o->of, &o->of.addr)
                   ? NULL
                   : NETWORK;
    if (strcmp(key, "seconds") == 0) {
        o->seconds = n;
        return is_number && n > 0 && n <= NJ__TAPS_SECONDS_MAX ? NULL : SECONDS;
    }
    if (strcmp(key, count) == 0) {
        o->n_max = n;
        return is_number && n > 0 && n <= count_max ? NULL : COUNT;
    }
    if (strcmp(count, "packets") == 0 && strcmp(key, "port") == 0) {
        o->port = (int)n;
        return is_number && n < UINT16_MAX ? NULL : PORT;
    }
    if (strcmp(count, "packets") == 0 && strcmp(key, "snaplen") == 0) {
        bool is_headers = strcmp(value, "headers") == 0;
        o->snaplen = is_headers ? NJ_CAPTURE_HEADERS : (uint32_t)n;
        return is_headers || (is_number && n >= 14 && n <= NJ_CAPTURE_SNAPLEN_MAX) ? NULL : SNAPLEN;
    }
    return "unknown parameter";
}

/* "KEY=VALUE&...": NULL, or why it is invalid. */
static const char *read_query(const char *query, struct options *o, const char *count,
                              uint64_t count_max)
{
    while (*query) {
        size_t n = strcspn(query, "&"), n_key = strcspn(query, "=&");
        char key[VALUE_BYTES], value[VALUE_BYTES];
        if (n_key == n || n_key >= sizeof key || n - n_key > sizeof value)
            return "expected KEY=VALUE, separated by &";
        memcpy(key, query, n_key);
        key[n_key] = '\0';
        memcpy(value, query + n_key + 1, n - n_key - 1);
        value[n - n_key - 1] = '\0';
        const char *why = read_one(o, key, value, count, count_max);
        if (why)
            return why;
        query += n + (query[n] == '&');
    }
    return NULL;
}

/* `why`: a constant without quotes. */
static unsigned refuse(struct nj__mgmt_request *r, unsigned status, const char *why, FILE *out)
{
    r->type = NJ__MGMT_JSON;
    fprintf(out, "{\"error\":\"%s\"}\n", why);
    return status;
}

static unsigned answer_end(struct nj__mgmt_request *r, bool was_running, FILE *out)
{
    r->type = NJ__MGMT_JSON;
    fprintf(out, "{\"ended\":%s}\n", was_running ? "true" : "false");
    return 200;
}

unsigned nj__route_capture(struct nj__mgmt_request *r, FILE *out)
{
    struct options o = {.port = -1, .seconds = NJ__TAPS_SECONDS, .n_max = NJ__CAPTURE_PACKETS};
    const char *why = read_query(r->query, &o, "packets", NJ__CAPTURE_PACKETS_MAX);

    if (why)
        return refuse(r, 400, why, out);
    const struct nj__capture_options options = {o.of, o.port, o.snaplen, (uint32_t)o.seconds,
                                                o.n_max};
    unsigned status = nj__capture_begin(r->view->capture, &options, &r->stream, &why);
    if (status != 200)
        return refuse(r, status, why, out);
    r->type = "application/x-pcapng";
    return 200;
}

unsigned nj__route_capture_end(struct nj__mgmt_request *r, FILE *out)
{
    return answer_end(r, nj__capture_end(r->view->capture), out);
}

unsigned nj__route_trace(struct nj__mgmt_request *r, FILE *out)
{
    struct options o = {.seconds = NJ__TAPS_SECONDS, .n_max = NJ__TRACE_REQUESTS};
    const char *why = read_query(r->query, &o, "requests", NJ__TRACE_REQUESTS_MAX);

    if (why)
        return refuse(r, 400, why, out);
    const struct nj__trace_options options = {o.of, (uint32_t)o.seconds, o.n_max};
    unsigned status = nj__trace_begin(r->view->trace, &options, &r->stream, &why);
    if (status != 200)
        return refuse(r, status, why, out);
    r->type = "application/x-ndjson";
    return 200;
}

unsigned nj__route_trace_end(struct nj__mgmt_request *r, FILE *out)
{
    return answer_end(r, nj__trace_end(r->view->trace), out);
}
