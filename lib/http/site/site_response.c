/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers requests that the rules of a site refuse or redirect (RFC 9110 15.4), those that came by
 * a connection of another site (15.5.20), and preflights of CORS (the Fetch standard, 3.2). */
#include "http/site/site_response.h"

#include "base/compiler.h"
#include "base/field_list.h"
#include "base/request_host.h"
#include "http/response_head.h"
#include "http/site/site_location.h"
#include "telem/counters_http.h"

/* --- redirects ------------------------------------------------------------------------------ */

static void redirect(struct nj_txn *t, const struct nj_site_rules *rules,
                     const struct nj_request_head *head, const struct nj_target *target)
{
    const struct nj_site_variables v = {nj_host_of_authority(head->authority), target->path,
                                        target->query, rules->prefix};
    struct nj_site_location l;

    if (head->path.n_bytes >= NJ_PATH_MAX)
        nj_respond_error_text(t, 414, (struct nj_field){0});
    else if (!nj_site_write_location(&l, rules->redirect_to, &v))
        nj_respond_error_text(t, 400, (struct nj_field){0});
    else
        nj_respond_error_text(t, rules->redirect_status,
                              (struct nj_field){NJ_STR("location"), {l.text, l.n_bytes}});
}

/* --- refusals ------------------------------------------------------------------------------- */

/* Is the client on a list that the rules deny, or on none of those that they allow? The client is
 * that which trusted proxies name. */
bool nj_site_denies(const struct nj_txn *t, const struct nj_site_rules *rules)
{
    const struct nj_policy *p = nj_shape_policy(t->set->shape);

    if (!(rules->allow | rules->deny))
        return false;
    uint32_t lists = p->lists ? p->lists(p->lists_ctx, &t->client_addr) : 0;
    return (rules->deny & lists) || (rules->allow && !(rules->allow & lists));
}

/* RFC 9110 15.5.20: did the handshake name a host with other certificates, or other authorities of
 * clients, than those of this request? */
static bool is_misdirected(const struct nj_txn *t, const struct nj_site_rules *rules)
{
    const struct nj_site_identity *of = t->framing->identity ? t->framing->identity(t->conn) : NULL;

    return of && of->files != rules->identity.files && of->site != rules->identity.site;
}

/* A redirect to https comes first: there, the client can show its certificate. */
static bool lacks_client_cert(const struct nj_txn *t, const struct nj_site_rules *rules)
{
    return rules->needs_client_cert && (t->is_https || !rules->redirect_cleartext_only) &&
           !(t->framing->client_cert && t->framing->client_cert(t->conn));
}

static void forbid(struct nj_txn *t)
{
    nj_count(t->set->counters, NJ_C_request_refused);
    nj_respond_error_text(t, 403, (struct nj_field){0});
}

/* Is the method one of "GET, HEAD"? */
static bool has_method(struct nj_str list, struct nj_str method)
{
    struct nj_str word;

    while (nj_list_next(&list, &word))
        if (nj_str_eq(word, method))
            return true;
    return false;
}

static bool is_preflight(const struct nj_txn *t, const struct nj_request_head *head)
{
    return t->method == NJ_METHOD_OPTIONS &&
           nj_field_find(head->fields, head->n_fields, NJ_STR("origin")) &&
           nj_field_find(head->fields, head->n_fields, NJ_STR("access-control-request-method"));
}

/* The fields that the browser asks for are allowed: rules do not name any. */
static void answer_preflight(struct nj_txn *t, const struct nj_site_rules *rules,
                             const struct nj_request_head *head)
{
    const struct nj_field *asked =
        nj_field_find(head->fields, head->n_fields, NJ_STR("access-control-request-headers"));
    struct nj_resp_head r;

    r.n_given = r.n_fields = 0;
    nj_resp_head_add(&r, NJ_STR("access-control-allow-methods"),
                     rules->methods.n_bytes > 0 ? rules->methods
                                                : NJ_STR("GET, HEAD, POST, PUT, PATCH, DELETE"));
    if (asked)
        nj_resp_head_add(&r, NJ_STR("access-control-allow-headers"), asked->value);
    nj_resp_head_add(&r, NJ_STR("access-control-max-age"), NJ_STR("86400"));
    nj_resp_head_send(&r, t, 204, 0, NULL);
}

/* Not a part of its caller: other requests would pay for its stack frame. */
__attribute__((noinline)) static bool answer(struct nj_txn *t, const struct nj_site_rules *rules,
                                             const struct nj_request_head *head,
                                             const struct nj_target *target)
{
    bool is_path = target->result == NJ_PATH_OK || target->result == NJ_PATH_HIDDEN;

    if (is_misdirected(t, rules)) {
        nj_count(t->set->counters, NJ_C_request_misdirected);
        nj_respond_error_text(t, 421, (struct nj_field){0});
    } else if (nj_site_denies(t, rules)) {
        forbid(t);
    } else if (nj_site_hides(rules, target->path)) {
        nj_respond_error_text(t, 404, (struct nj_field){0});
    } else if (rules->cors_origin.n_bytes > 0 && is_preflight(t, head)) {
        answer_preflight(t, rules, head); /* browsers show no certificate with it */
    } else if (lacks_client_cert(t, rules)) {
        forbid(t);
    } else if (rules->redirect_status != 0 && is_path &&
               !(rules->redirect_cleartext_only && t->is_https)) {
        redirect(t, rules, head, target);
    } else if (rules->methods.n_bytes > 0 && !has_method(rules->methods, head->method)) {
        nj_respond_error_text(t, 405, (struct nj_field){NJ_STR("allow"), rules->methods});
    } else {
        return false;
    }
    return true;
}

static void count(struct nj_txn *t, const struct nj_site_rules *rules)
{
    t->site = nj_txns_site(t->set, rules->counts_at);
    nj_site_count(t->site, NJ_SITE_N_BEGUN, 1);
}

/* Neither this nor search() is a part of nj__site_answer(), which then has no stack frame. */
__attribute__((noinline)) static bool apply(const struct nj_site_rules *rules, struct nj_txn *t,
                                            const struct nj_request_head *head,
                                            const struct nj_target *target)
{
    const uint32_t that_answer = NJ_SITE_REDIRECT | NJ_SITE_METHODS | NJ_SITE_ALLOW | NJ_SITE_DENY |
                                 NJ_SITE_CORS | NJ_SITE_CLIENT_CERT | NJ_SITE_IDENTITY;

    if (rules->counts_at != 0) /* not of hosts without a site */
        count(t, rules);
    if (!rules->sites) /* no key is set */
        return false;
    t->rules = rules;
    t->is_https = t->named_scheme != NJ_SCHEME_NONE ? t->named_scheme == NJ_SCHEME_HTTPS
                                                    : t->framing->tls_suite != NULL;
    nj_sites_hold(rules->sites, t->set->shard_number);
    if (nj_unlikely(rules->is_unlogged) && t->access) {
        t->set->access.drop(t->set->access.ctx, t->access);
        t->access = NULL;
    }
    return (rules->keys & that_answer) && answer(t, rules, head, target);
}

__attribute__((noinline)) static bool search(const struct nj_sites *sites, struct nj_txn *t,
                                             const struct nj_request_head *head,
                                             const struct nj_target *target)
{
    const struct nj_site_rules *rules = nj_sites_find(sites, head->authority, target->path);

    return rules && apply(rules, t, head, target);
}

bool nj__site_answer(const struct nj_sites *sites, struct nj_txn *t,
                     const struct nj_request_head *head, const struct nj_target *target)
{
    const struct nj_site_rules *rules = nj_sites_first_rules(sites, head->authority);

    if (nj_unlikely(!rules))
        return search(sites, t, head, target);
    if (nj_unlikely(rules->sites))
        return apply(rules, t, head, target);
    count(t, rules);
    return false;
}
