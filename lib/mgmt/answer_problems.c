/* SPDX-License-Identifier: BSD-3-Clause */
/* `problems`: what is wrong now. */
#include "mgmt/answers.h"
#include "mgmt/problems.h"

struct list {
    struct nj__doc list;
    uint32_t n;
};

static void add_problem(void *ctx, enum nj__problem_kind kind, const char *text)
{
    struct list *to = ctx;
    struct nj__doc one = nj__doc_item(to->list, to->n++);

    nj__doc_text(one, "kind", nj__problem_name(kind));
    nj__doc_text(one, "text", text);
}

bool nj__answer_problems(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    struct list to = {nj__doc_list(d, "problems", "problem"), 0};

    if (!params)
        nj__problems_find(v, add_problem, &to);
    return !params;
}
