/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes the fields of responses as the operator wants: those that the rules name, CORS (the Fetch
 * standard, 3.2), and HSTS, which is sent for https only (RFC 6797 7.2). */
#include "http/site/site_fields.h"

#include "site/site_table.h"

void nj_site_drop_rules(struct nj_txn *t)
{
    nj_sites_drop(t->rules->sites, t->set->shard_number);
    t->rules = NULL;
}

static void remove_field(struct nj_resp_head *r, struct nj_str name)
{
    struct nj_field *fields = r->fields + NJ_RESP_HEAD_OWN;
    uint32_t n_kept = 0, n_given = 0;

    for (uint32_t i = 0; i < r->n_fields; i++) {
        if (nj_str_eq(fields[i].name, name))
            continue;
        n_given += i < r->n_given;
        fields[n_kept++] = fields[i];
    }
    r->n_fields = n_kept;
    r->n_given = n_given;
}

/* Adds a field before those of the file server, so that it may be `server` or `date`. */
static void add_given(struct nj_resp_head *r, struct nj_str name, struct nj_str value)
{
    struct nj_field *fields = r->fields + NJ_RESP_HEAD_OWN;

    NJ_ASSERT(r->n_fields < NJ_RESP_HEAD_FIELDS_MAX);
    memmove(fields + r->n_given + 1, fields + r->n_given,
            (r->n_fields - r->n_given) * sizeof *fields);
    fields[r->n_given++] = (struct nj_field){name, value};
    r->n_fields++;
}

static void set_field(struct nj_resp_head *r, struct nj_str name, struct nj_str value)
{
    remove_field(r, name);
    add_given(r, name, value);
}

void nj_site_change_fields(const struct nj_txn *t, struct nj_resp_head *r)
{
    const struct nj_site_rules *rules = t->rules;

    if (rules->cors_origin.n_bytes > 0)
        set_field(r, NJ_STR("access-control-allow-origin"), rules->cors_origin);
    if (rules->hsts.n_bytes > 0 && t->is_https)
        set_field(r, NJ_STR("strict-transport-security"), rules->hsts);
    for (uint32_t i = 0; i < rules->n_fields; i++) {
        const struct nj_site_field *f = &rules->fields[i];
        if (f->change == NJ_FIELD_ADD)
            add_given(r, f->name, f->value);
        else if (f->change == NJ_FIELD_SET)
            set_field(r, f->name, f->value);
        else
            remove_field(r, f->name);
    }
}

bool nj_site_removes(const struct nj_site_rules *rules, struct nj_str name)
{
    for (uint32_t i = 0; i < rules->n_fields; i++)
        if (rules->fields[i].change == NJ_FIELD_REMOVE && nj_str_eq(rules->fields[i].name, name))
            return true;
    return false;
}
