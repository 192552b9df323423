/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/units.h"
#include "mgmt/json_document.h"
#include "threads/os_clock.h"

/* The next state is not due before; the streams are asked every 50 ms. */
#define PERIOD (975 * NJ_MS)

/* A state that subscribers send. */
struct nj__mgmt_state_text {
    uint32_t n_users; /* subscribers, and one for the newest */
    size_t n;
    char *text;
};

struct subscriber {
    struct nj__mgmt_events *of;
    const struct nj_mgmt_view *view;
    struct nj__mgmt_state_text *state; /* NULL: none yet */
    size_t n_sent;                     /* of it */
};

static void put(struct nj__mgmt_state_text *s)
{
    if (!s || --s->n_users > 0)
        return;
    free(s->text);
    free(s);
}

/* A document that is a command: an unknown one has no event. */
static void write_event(const struct nj_mgmt_view *v, const char *command, const char *params,
                        FILE *out)
{
    char *text = NULL;
    size_t n = 0;
    FILE *document = open_memstream(&text, &n);

    if (!document)
        return;
    bool ok = nj__mgmt_write_json(v, command, params, document);
    if (fclose(document) == 0 && ok) /* a line */
        fprintf(out, "event: %s\ndata: %s\n", command, text);
    free(text);
}

static void write_state(const struct nj_mgmt_view *v, FILE *out)
{
    static const struct {
        const char *command, *params;
    } shown[] = {{"server", NULL},  {"stats", NULL},          {"shards", NULL}, {"classes", NULL},
                 {"limits", NULL},  {"latency", NULL},        {"files", NULL},  {"port", NULL},
                 {"memory", NULL},  {"refused", NULL},        {"blocks", NULL}, {"problems", NULL},
                 {"workers", NULL}, {"transfers", "limit=50"}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(shown); i++)
        write_event(v, shown[i].command, shown[i].params, out);
    /* The state is complete. */
    fprintf(out, "event: state\ndata: {\"time_ms\":%llu}\n\n",
            (unsigned long long)(nj_os_clock_gettime_ns(CLOCK_REALTIME) / NJ_MS));
}

/* Without memory the subscribers wait for the next period. */
static void make_state(struct nj__mgmt_events *e, const struct nj_mgmt_view *v)
{
    struct nj__mgmt_state_text *s = calloc(1, sizeof *s);
    FILE *out = s ? open_memstream(&s->text, &s->n) : NULL;

    e->made_at = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
    if (!out) {
        free(s);
        return;
    }
    s->n_users = 1;
    write_state(v, out);
    bool ok = !ferror(out);
    if (fclose(out) != 0 || !ok) {
        put(s);
        return;
    }
    put(e->newest);
    e->newest = s;
}

static bool is_due(const struct nj__mgmt_events *e)
{
    return !e->newest || nj_os_clock_gettime_ns(CLOCK_MONOTONIC) - e->made_at >= PERIOD;
}

static bool has_state(void *subscriber)
{
    const struct subscriber *s = subscriber;

    return s->state != s->of->newest || is_due(s->of);
}

static ssize_t read_state(void *subscriber, char *to, size_t n)
{
    struct subscriber *s = subscriber;
    struct nj__mgmt_events *e = s->of;

    if (!s->state || s->n_sent == s->state->n) {
        if (is_due(e))
            make_state(e, s->view);
        if (!e->newest || s->state == e->newest)
            return 0;
        put(s->state);
        s->state = e->newest;
        s->state->n_users++;
        s->n_sent = 0;
    }
    n = nj_min_u64(n, s->state->n - s->n_sent);
    memcpy(to, s->state->text + s->n_sent, n);
    s->n_sent += n;
    return (ssize_t)n;
}

static void end_subscriber(void *subscriber)
{
    struct subscriber *s = subscriber;

    put(s->state);
    s->of->n_subscribers--;
    free(s);
}

bool nj__mgmt_events_subscribe(struct nj__mgmt_events *e, const struct nj_mgmt_view *v,
                               struct nj__mgmt_stream *stream)
{
    struct subscriber *s =
        e->n_subscribers < NJ__MGMT_SUBSCRIBERS_MAX ? calloc(1, sizeof *s) : NULL;

    if (!s)
        return false;
    s->of = e;
    s->view = v;
    e->n_subscribers++;
    *stream = (struct nj__mgmt_stream){read_state, has_state, end_subscriber, s};
    return true;
}

void nj__mgmt_events_end(struct nj__mgmt_events *e)
{
    put(e->newest);
    e->newest = NULL;
}
