/* SPDX-License-Identifier: BSD-3-Clause */
/* `limits`: the limits in force, and which were changed at run time. Telemetry changes them. */
#include <stdlib.h>

#include "mgmt/answers.h"
#include "mgmt/answer_parts.h"
#include "threads/os_clock.h"

/* An answer of telemetry holds 16 KiB. */
#define SHOWN_TELEMETRY 32u

static void add_limits(struct nj__doc d, const struct nj_class *c)
{
    char text[64];

    for (uint32_t i = 0; nj_class_key_name(i); i++) {
        const char *value = nj_class_key_format(c, i, text, sizeof text);
        if (value)
            nj__doc_text(d, nj_class_key_name(i), value);
    }
}

/* Only configured limits, so that 32 classes fit into an answer of telemetry. */
static void add_policy(void *root, const struct nj_policy *p)
{
    struct nj_class server = {.total = p->total};
    const struct nj__doc *d = root;

    nj__doc_uint(*d, "version", p->version);
    add_limits(nj__doc_dict(*d, "server"), &server);
    struct nj__doc list = nj__doc_list(*d, "classes", "class_");
    for (uint32_t i = 0; i < p->n_classes; i++)
        add_limits(nj__doc_named_item(list, p->classes[i].name), &p->classes[i]);
}

/* A key that was changed, until when, and its value from then on. */
static void add_change(struct nj__doc list, uint32_t number, const struct nj_limit_shown *shown,
                       uint32_t key, nj_ns now)
{
    const struct nj_limit_change *c = &shown->change;
    struct nj__doc one = nj__doc_item(list, number);
    struct nj_class_keys follower = {.set = UINT32_MAX, .value = shown->follower};
    char text[64];

    if (c->of[0])
        nj__doc_text(one, "class", c->of);
    nj__doc_text(one, "key", nj_class_key_name(key));
    nj__doc_text(one, "value", nj_class_keys_format(&c->keys, key, text, sizeof text));
    if (c->until == NJ_NEVER)
        return;
    nj__doc_uint(one, "seconds_left", nj_limit_change_seconds_left(c, now));
    if (shown->has_follower)
        nj__doc_text(one, "then", nj_class_keys_format(&follower, key, text, sizeof text));
}

static void add_changes(const struct nj_mgmt_view *v, struct nj__doc d)
{
    struct nj_limit_shown *shown;
    uint32_t n = nj_policies_limits(v->policies, &shown), n_added = 0;
    struct nj__doc list = nj__doc_list(d, "changes", "change");
    nj_ns now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);

    d.of->is_incomplete |= !shown;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t key = 0; nj_class_key_name(key); key++)
            if (shown[i].change.keys.set >> key & 1 &&
                (n_added < SHOWN_TELEMETRY || !nj__doc_is_telemetry(d)))
                add_change(list, n_added++, &shown[i], key, now);
    free(shown);
}

bool nj__answer_limits(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    char why[256];

    if (params && !nj__doc_is_telemetry(d))
        return false;
    if (params && !v->hooks.change_limits(v->hooks.ctx, params, why, sizeof why)) {
        for (char *p = why; *p; p++) /* characters that JSON has to escape */
            if (*p == '"' || *p == '\\' || (unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
                *p = '?';
        nj__doc_text(d, "error", why);
    } else {
        nj_policies_call_with_current(v->policies, add_policy, &d);
        add_changes(v, d);
    }
    return true;
}
