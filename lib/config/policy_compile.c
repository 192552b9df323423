/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiles the policy of one moment from the policy file, the command line and run-time changes.
 * Hours are resolved here, so that lcores need no wall clock. */
#include <string.h>

#include "config/policy_file.h"

#define RETRY_AFTER_S 30u

static bool is_active_at(struct nj_hours h, uint32_t minute)
{
    if (h.from <= h.to)
        return h.from == h.to || (minute >= h.from && minute < h.to);
    return minute >= h.from || minute < h.to; /* past midnight */
}

bool nj_policy_file_has_hours(const struct nj_policy_file *f)
{
    for (uint32_t i = 0; f && i < f->n_overrides; i++)
        if (f->override[i].hours.from != f->override[i].hours.to)
            return true;
    for (uint32_t i = 0; f && i < f->n_classes; i++)
        if (f->class_at[i].hours.from != f->class_at[i].hours.to)
            return true;
    return false;
}

/* Bits of overrides, then of classes. */
uint64_t nj_policy_active_hours_mask(const struct nj_policy_file *f, uint32_t minute)
{
    uint64_t bits = 0;

    for (uint32_t i = 0; i < f->n_overrides; i++)
        bits |= (uint64_t)is_active_at(f->override[i].hours, minute) << i;
    for (uint32_t i = 0; i < f->n_classes; i++)
        bits |= (uint64_t)is_active_at(f->class_at[i].hours, minute) << (NJ_POLICY_HOURS_MAX + i);
    return bits;
}

_Static_assert(NJ_POLICY_HOURS_MAX + NJ_CLASSES_MAX <= 64, "a bit for each");

static void apply_overrides(const struct nj_policy_file *f, uint32_t of, uint64_t hours,
                            struct nj_class *to)
{
    for (uint32_t i = 0; i < f->n_overrides; i++)
        if (f->override[i].class_index == of && hours >> i & 1)
            nj_class_keys_apply(&f->override[i].keys, to);
}

static void compile_rules(const struct nj_class_def *c, uint8_t index, struct nj_policy *out)
{
    if (!c->has_match) /* used by handlers only */
        return;
    for (uint32_t i = 0; i < (c->n_paths ? c->n_paths : 1); i++) {
        for (uint32_t k = 0; k < (c->n_hosts ? c->n_hosts : 1); k++) {
            struct nj_class_rule *r = &out->rules[out->n_rules++];
            *r = (struct nj_class_rule){.class_index = index, .lists = c->lists};
            if (c->n_paths)
                r->path_prefix = c->path[i];
            if (c->n_hosts)
                r->host = c->host[k];
            r->header = c->header;
            r->value = c->value;
            r->subject = c->subject;
        }
    }
}

static void compile_class(const struct nj_policy_file *f, uint32_t i,
                          const struct nj_server_config *flags,
                          const struct nj_policy_changes *changes, uint64_t hours,
                          struct nj_policy *out)
{
    const struct nj_class_def *from = &f->class_at[i];
    struct nj_class *c = &out->classes[out->n_classes];
    const struct nj_class *d = &out->classes[0];

    *c = (struct nj_class){.slot = from->slot, .slot_gen = from->slot_gen};
    memcpy(c->name, from->name, sizeof c->name);
    if (i > 0) { /* limits per client and per response are inherited */
        c->client = d->client;
        c->request = d->request;
        c->rate_after = d->rate_after;
        c->caps = d->caps;
    }
    nj_class_keys_apply(&from->keys, c);
    apply_overrides(f, i, hours, c);
    if (i == 0 && flags)
        nj_class_keys_apply_options(flags, "class default", c);
    if (changes)
        nj_class_keys_apply(&changes->of[i], c);
    if (c->action == NJ_ACTION_TOO_MANY && c->retry_after_s == 0)
        c->retry_after_s = RETRY_AFTER_S;
    compile_rules(from, (uint8_t)out->n_classes++, out);
}

void nj_policy_compile(const struct nj_policy_file *f, const struct nj_server_config *flags,
                       const struct nj_policy_changes *changes, uint64_t hours,
                       struct nj_policy *out)
{
    struct nj_class server = {0};

    *out = (struct nj_policy){
        .client_by = f->client_by,
        .client_field = f->client_field,
        .client_bits4 = f->client_bits4,
        .client_bits6 = f->client_bits6,
        .trusted = f->trusted,
        .allow_only = f->allow_only,
        .allow = f->allow,
        .deny = f->deny,
        .deny_action = f->deny_action,
    };
    nj_class_keys_apply(&f->server, &server);
    apply_overrides(f, NJ_POLICY_WHOLE_SERVER, hours, &server);
    if (flags)
        nj_class_keys_apply_options(flags, "server", &server);
    if (changes)
        nj_class_keys_apply(&changes->server, &server);
    out->total = server.total;
    compile_class(f, 0, flags, changes, hours, out);
    out->n_rules = 0; /* the default class needs none */
    for (uint32_t i = 1; i < f->n_classes; i++)
        if (hours >> (NJ_POLICY_HOURS_MAX + i) & 1)
            compile_class(f, i, flags, changes, hours, out);
}
