/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: request fields of any bytes, one per line, without names: If-Match, If-None-Match,
 * If-Modified-Since, If-Unmodified-Since, If-Range, Accept-Encoding, Accept. An empty line is an
 * absent field. Conditions are evaluated with a Range field and without one.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/proto/negotiate.h"
#include "http/proto/preconditions.h"

static void require(int cond)
{
    if (!cond)
        abort();
}

static struct nj_str next_line(struct nj_str *rest)
{
    const char *end = rest->n_bytes ? memchr(rest->p, '\n', rest->n_bytes) : NULL;
    uint32_t n = end ? (uint32_t)(end - rest->p) : rest->n_bytes;
    struct nj_str line = {n ? rest->p : NULL, n};

    rest->p += end ? n + 1 : n;
    rest->n_bytes -= end ? n + 1 : n;
    return line;
}

/* The result with a Range field, at a time. `plain`: the result without. */
static void check_range(const struct nj_preconditions *c, const struct nj_validators *v,
                        int64_t now_s, enum nj_precond_result plain)
{
    struct nj_preconditions with = *c;

    with.range = NJ_STR("bytes=0-9");
    enum nj_precond_result any = nj_preconditions_eval(&with, v, now_s, false),
                           coded = nj_preconditions_eval(&with, v, now_s, true);
    /* A range applies only where the whole would be sent. */
    require(any == plain || (any == NJ_PRECOND_RANGE && plain == NJ_PRECOND_PASSED));
    require(coded == any || (coded == NJ_PRECOND_PASSED && any == NJ_PRECOND_RANGE));
    if (!c->if_range.p && !c->if_unmodified_since.p && plain == NJ_PRECOND_PASSED)
        require(coded == NJ_PRECOND_RANGE);
    require(!c->if_range.p || v->n_etag > 0 || v->has_date || any != NJ_PRECOND_RANGE);
}

static void check_conditions(const struct nj_preconditions *c)
{
    struct nj_file_object o = {
        .version = {.mtime_ns = 784111777000000000, .ctime_ns = 784111777000000000}};
    struct nj_validators v, none = {0};

    nj_validators_of_object(&o, 784111778000000000, &v);
    for (int64_t now_s = 784111776; now_s < 784111779; now_s++) {
        enum nj_precond_result verdict = nj_preconditions_eval(c, &v, now_s, false);
        /* Without conditions of its kind a result must not occur. */
        require(verdict != NJ_PRECOND_FAILED || c->if_match.p || c->if_unmodified_since.p);
        require(verdict != NJ_PRECOND_NOT_MODIFIED || c->if_none_match.p || c->if_modified_since.p);
        require(verdict != NJ_PRECOND_RANGE);
        check_range(c, &v, now_s, verdict);
    }
    check_range(c, &none, 784111779, nj_preconditions_eval(c, &none, 784111779, false));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct nj_str rest = {(const char *)data, (uint32_t)n_bytes};
    struct nj_preconditions c = {0};

    c.if_match = next_line(&rest);
    c.if_none_match = next_line(&rest);
    c.if_modified_since = next_line(&rest);
    c.if_unmodified_since = next_line(&rest);
    c.if_range = next_line(&rest);
    check_conditions(&c);

    struct nj_accepted_codings codings = nj_accept_encoding_parse(next_line(&rest));
    for (uint32_t siblings = 0; siblings < 1u << NJ_N_CODINGS; siblings++) {
        uint32_t coding = nj_coding_select(&codings, (uint8_t)siblings);
        require(coding == NJ_CODING_IDENTITY || (siblings & 1u << coding && codings.q[coding] > 0));
        require(coding == NJ_CODING_IDENTITY || codings.q[coding] >= codings.q[NJ_CODING_IDENTITY]);
    }
    for (uint32_t i = 0; i <= NJ_CODING_IDENTITY; i++)
        require(codings.q[i] <= 1000);
    (void)nj_accept_prefers_json(next_line(&rest));
    return 0;
}
