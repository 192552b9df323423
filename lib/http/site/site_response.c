/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers requests that the rules of a site refuse or redirect (RFC 9110 15.4), and preflights of
 * CORS (the Fetch standard, 3.2). */
#include "http/site/site_response.h"

#include "base/compiler.h"
#include "base/request_host.h"
#include "http/response_head.h"
#include "site/site_table.h"
#include "telem/counters_http.h"

/* The text of the operator, a host, and an encoded path with its query, once. */
#define LOCATION_MAX (256u + NJ_SITE_HOST_MAX + NJ_PATH_LOCATION_MAX)

static bool is_tls(const struct nj_txn *t)
{
    return t->framing->tls_suite != NULL;
}

/* --- redirects ------------------------------------------------------------------------------ */

/* A host that may stand in a URL: letters, digits, '-', '.', '_', and the brackets and colons of
 * IPv6. */
static bool is_host_for_url(struct nj_str h)
{
    for (uint32_t i = 0; i < h.n_bytes; i++) {
        char c = nj_lower(h.p[i]);
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("-._[]:", c))))
            return false;
    }
    return h.n_bytes > 0 && h.n_bytes <= NJ_SITE_HOST_MAX;
}

/* A location under construction. */
struct location {
    char text[LOCATION_MAX];
    uint32_t n_bytes;
};

static void append(struct location *l, struct nj_str s)
{
    l->n_bytes = (uint32_t)((char *)nj_str_put((uint8_t *)l->text + l->n_bytes, s) - l->text);
}

/* Replaces $host, and $path or $rest. The template has at most 255 bytes and at most one of each.
 * Path and query are shorter than NJ_PATH_MAX. False: the request has no host that can be
 * named. */
static bool write_location(struct location *l, const struct nj_site_rules *rules,
                           struct nj_str host, const struct nj_target *target)
{
    struct nj_str template = rules->redirect_to, path = target->path;
    uint32_t n_prefix = rules->prefix.n_bytes;

    l->n_bytes = 0;
    while (template.n_bytes > 0) {
        const char *dollar = memchr(template.p, '$', template.n_bytes);
        uint32_t n = dollar ? (uint32_t)(dollar - template.p) : template.n_bytes;
        append(l, (struct nj_str){template.p, n});
        nj_str_skip(&template, n);
        if (nj_str_starts_with(template, NJ_STR("$host"))) {
            if (!is_host_for_url(host))
                return false;
            append(l, host);
            nj_str_skip(&template, 5);
        } else if (template.n_bytes > 0) { /* $path, $rest */
            bool is_rest = nj_str_starts_with(template, NJ_STR("$rest"));
            struct nj_str from = path;
            if (is_rest)
                nj_str_skip(&from, n_prefix < path.n_bytes ? n_prefix : path.n_bytes);
            l->n_bytes += (uint32_t)nj_path_encode(from, target->query, l->text + l->n_bytes);
            nj_str_skip(&template, 5);
        }
    }
    return true;
}

static void redirect(struct nj_txn *t, const struct nj_site_rules *rules,
                     const struct nj_request_head *head, const struct nj_target *target)
{
    struct location l;

    if (head->path.n_bytes >= NJ_PATH_MAX)
        nj_respond_error_text(t, 414, (struct nj_field){0});
    else if (!write_location(&l, rules, nj_host_of_authority(head->authority), target))
        nj_respond_error_text(t, 400, (struct nj_field){0});
    else
        nj_respond_error_text(t, rules->redirect_status,
                              (struct nj_field){NJ_STR("location"), {l.text, l.n_bytes}});
}

/* --- refusals ------------------------------------------------------------------------------- */

/* Is the client on a list that the rules deny, or on none of those that they allow? The client is
 * that which trusted proxies name. */
static bool is_denied(const struct nj_txn *t, const struct nj_site_rules *rules)
{
    const struct nj_policy *p = nj_shape_policy(t->set->shape);

    if (!(rules->allow | rules->deny))
        return false;
    struct nj_addr addr = t->client == nj_clients_overflow_client(t->set->clients)
                              ? t->remote
                              : nj_client_addr(t->client);
    uint32_t lists = p->lists ? p->lists(p->lists_ctx, &addr) : 0;
    return (rules->deny & lists) || (rules->allow && !(rules->allow & lists));
}

/* Is the method one of "GET, HEAD"? */
static bool has_method(struct nj_str list, struct nj_str method)
{
    while (list.n_bytes > 0) {
        const char *comma = memchr(list.p, ',', list.n_bytes);
        uint32_t n = comma ? (uint32_t)(comma - list.p) : list.n_bytes;
        if (nj_str_eq(nj_str_trim((struct nj_str){list.p, n}), method))
            return true;
        nj_str_skip(&list, comma ? n + 1 : n);
    }
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

    if (is_denied(t, rules)) {
        nj_count(t->set->counters, NJ_C_request_refused);
        nj_respond_error_text(t, 403, (struct nj_field){0});
    } else if (rules->cors_origin.n_bytes > 0 && is_preflight(t, head)) {
        answer_preflight(t, rules, head);
    } else if (rules->redirect_status != 0 && is_path &&
               !(rules->redirect_cleartext_only && is_tls(t))) {
        redirect(t, rules, head, target);
    } else if (rules->methods.n_bytes > 0 && !has_method(rules->methods, head->method)) {
        nj_respond_error_text(t, 405, (struct nj_field){NJ_STR("allow"), rules->methods});
    } else {
        return false;
    }
    return true;
}

bool nj__site_answer(struct nj_txn *t, const struct nj_request_head *head,
                     const struct nj_target *target)
{
    const struct nj_sites *sites = nj_shape_policy(t->set->shape)->sites;
    const struct nj_site_rules *rules = nj_sites_find(sites, head->authority, target->path);

    if (!rules || !rules->sites) /* no key is set */
        return false;
    t->rules = rules;
    nj_sites_hold(rules->sites, t->set->shard_number);
    return answer(t, rules, head, target);
}
