/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/json_escape_utf8.h"
#include "conn/request_trace.h"
#include "log/address_text.h"
#include "log/log.h"
#include "threads/os_clock.h"

struct nj_mgmt_trace {
    const struct nj_mgmt_view *view;
    struct nj__taps *taps;
    struct nj__trace_options options;
    struct {
        struct nj_trace *trace;
        struct nj_trace_command begin, end;
    } lcore[NJ_SHARDS_MAX];
};

/* --- lines ------------------------------------------------------------------------------------ */

static void add(struct nj__tap_out *out, const char *fmt, ...) NJ_PRINTF(2, 3);
static void add(struct nj__tap_out *out, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    nj__tap_write(out, text, nj_min_u32((uint32_t)n, sizeof text - 1));
}

static void add_text(struct nj__tap_out *out, const char *key, const char *text, uint32_t n)
{
    char escaped[NJ_JSON_ESCAPED_MAX(NJ_TRANSFER_PATH_BYTES)];
    const struct nj_str s = {text, n};

    add(out, ",\"%s\":\"", key);
    nj__tap_write(out, escaped, nj_json_escape(escaped, sizeof escaped, s, NJ_JSON_REPLACE));
    nj__tap_write(out, "\"", 1);
}

/* UTC in microseconds. The shard's clock has another origin. */
static void add_time(struct nj__tap_out *out, const struct nj_tsc_clock *clock, nj_ns at)
{
    nj_ns utc = nj_os_clock_gettime_ns(CLOCK_REALTIME) - (nj_tsc_clock_now(clock) - at);
    time_t s = (time_t)(utc / NJ_SEC);
    char text[32] = "";
    struct tm tm;

    if (gmtime_r(&s, &tm))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    add(out, "{\"arrived\":\"%s.%06uZ\"", text, (unsigned)(utc % NJ_SEC / 1000));
}

static void add_ms(struct nj__tap_out *out, const char *key, nj_ns ns)
{
    add(out, ",\"%s\":%" PRIu64 ".%03u", key, ns / NJ_MS, (unsigned)(ns % NJ_MS / 1000));
}

static void add_waits(struct nj__tap_out *out, const struct nj_traced_request *r)
{
    const char *comma = "";

    add(out, ",\"waits_ms\":{");
    for (uint32_t i = 0; i < NJ_N_WHYS; i++) {
        if (r->waited[i] == 0)
            continue;
        add(out, "%s\"%s\":%" PRIu64 ".%03u", comma, nj_why_name((enum nj_why)i),
            r->waited[i] / NJ_MS, (unsigned)(r->waited[i] % NJ_MS / 1000));
        comma = ",";
    }
    add(out, "}");
}

static void add_address(struct nj__tap_out *out, const char *key, const struct nj_addr *a)
{
    char text[NJ_ADDRESS_TEXT_BYTES];

    nj_address_text(a, text);
    add(out, ",\"%s\":\"%s\"", key, text);
}

static void format(void *of, uint32_t lcore, const void *record, struct nj__tap_out *out)
{
    const struct nj_mgmt_trace *t = of;
    const struct nj_traced_request *r = record;

    add_time(out, t->view->clock, r->arrived_at);
    add_address(out, "client", &r->client);
    add_address(out, "remote", &r->remote);
    add(out, ",\"protocol\":\"%s\",\"tls\":%s", r->is_h2 ? "h2" : "http/1",
        r->is_tls ? "true" : "false");
    add_text(out, "method", r->method, r->n_method);
    add_text(out, "path", r->path, r->n_path);
    add(out, ",\"path_cut\":%s", r->is_path_cut ? "true" : "false");
    add_text(out, "class", r->class_of, (uint32_t)strnlen(r->class_of, sizeof r->class_of));
    add(out, ",\"shard\":%u,\"status\":%u,\"bytes\":%" PRIu64, r->shard, r->status, r->n_bytes);
    if (r->first_byte_at)
        add_ms(out, "first_byte_ms", r->first_byte_at - r->arrived_at);
    add_ms(out, r->is_running ? "age_ms" : "last_byte_ms", r->ended_at - r->arrived_at);
    add_ms(out, "throttled_ms", r->throttled);
    add_waits(out, r);
    add(out, ",\"complete\":%s,\"running\":%s}\n", r->is_complete ? "true" : "false",
        r->is_running ? "true" : "false");
}

static void tail(void *of, const struct nj__taps *taps, struct nj__tap_out *out)
{
    const struct nj_mgmt_trace *t = of;
    uint64_t n = 0, n_lost = 0;

    for (uint32_t i = 0; i < t->view->n_shards; i++) {
        n += nj__taps_n_records(taps, i);
        n_lost += nj__taps_n_lost(taps, i);
    }
    add(out, "{\"requests\":%" PRIu64 ",\"dropped\":%" PRIu64 "}\n", n, n_lost);
}

/* So that the client knows that its requests are recorded from here on. */
static void head(void *of, struct nj__tap_out *out)
{
    const struct nj_mgmt_trace *t = of;

    add(out, "{\"seconds\":%u}\n", t->options.seconds);
}

/* --- commands --------------------------------------------------------------------------------- */

static struct nj_command *begin(void *of, uint32_t lcore, struct nj_record_ring *ring)
{
    struct nj_mgmt_trace *t = of;
    struct nj_trace_command *command = &t->lcore[lcore].begin;

    if (!t->lcore[lcore].trace)
        t->lcore[lcore].trace = nj_trace_new(ring, &t->options.of);
    if (!t->lcore[lcore].trace)
        return NULL;
    *command = (struct nj_trace_command){.trace = t->lcore[lcore].trace};
    nj_trace_begin(command);
    return &command->command;
}

static struct nj_command *end(void *of, uint32_t lcore)
{
    struct nj_mgmt_trace *t = of;
    struct nj_trace_command *command = &t->lcore[lcore].end;

    *command =
        (struct nj_trace_command){.trace = t->lcore[lcore].trace, .ends = &t->lcore[lcore].begin};
    nj_trace_begin(command);
    return &command->command;
}

static void release(void *of)
{
    struct nj_mgmt_trace *t = of;

    for (uint32_t i = 0; i < NJ_SHARDS_MAX; i++) {
        nj_trace_free(t->lcore[i].trace);
        t->lcore[i].trace = NULL;
    }
}

static const struct nj__tap_kind kind = {"trace", "request", begin, end,
                                         head,    format,    tail,  release};

/* --- life ------------------------------------------------------------------------------------- */

struct nj_mgmt_trace *nj_mgmt_trace_new(const struct nj_mgmt_view *view)
{
    struct nj_mgmt_trace *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->view = view;
    t->taps = nj__taps_new(view, &kind, t);
    if (t->taps)
        return t;
    free(t);
    return NULL;
}

void nj_mgmt_trace_free(struct nj_mgmt_trace *t)
{
    if (!t)
        return;
    nj__taps_free(t->taps);
    free(t);
}

unsigned nj__trace_begin(struct nj_mgmt_trace *t, const struct nj__trace_options *options,
                         struct nj__mgmt_stream *stream, const char **why)
{
    struct nj__taps_limits limits = {.seconds = options->seconds, .n_max = options->n_requests};
    char net[NJ_NETWORK_TEXT_BYTES];

    *why = nj__taps_why_busy(t->taps);
    if (*why)
        return 409;
    t->options = *options;
    for (uint32_t i = 0; i < t->view->n_shards; i++)
        limits.is_in[i] = true;
    if (!nj__taps_begin(t->taps, &limits, stream)) {
        *why = "not enough memory";
        return 503;
    }
    nj_log(NJ_LEVEL_INFO,
           "management: a trace begins: requests of %s, for at most %u s or %" PRIu64 " requests",
           options->of.bits > 0 ? nj_network_text(&options->of.addr, options->of.bits, net)
                                : "all clients",
           options->seconds, options->n_requests);
    return 200;
}

bool nj__trace_end(struct nj_mgmt_trace *t)
{
    return nj__taps_end(t->taps);
}

bool nj__trace_tick(struct nj_mgmt_trace *t)
{
    return nj__taps_tick(t->taps);
}
