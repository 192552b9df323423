/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/answer_diff.h"

#include <stdlib.h>
#include <string.h>

#include "mgmt/answers.h"
#include "mgmt/blocks.h"
#include "mgmt/json_document.h"

struct diff {
    struct nj__doc changes, limits;
    uint32_t n_changes, n_limits;
};

static void text_or_null(struct nj__doc one, const char *key, const char *text)
{
    if (text)
        nj__doc_text(one, key, text);
}

static void add_change(void *of, const struct nj_config_change *c)
{
    struct diff *d = of;
    struct nj__doc one = c->is_limit ? nj__doc_item(d->limits, d->n_limits++)
                                     : nj__doc_item(d->changes, d->n_changes++);

    nj__doc_text(one, c->is_limit ? "class" : "section", c->section);
    nj__doc_text(one, "key", c->key);
    text_or_null(one, "running", c->running);
    text_or_null(one, "file_has", c->file_has);
    text_or_null(one, "file", c->file);
    if (c->line > 0)
        nj__doc_uint(one, "line", c->line);
}

/* Returns the number of lines. */
static uint32_t add_lines(struct nj__doc root, const char *key, char *lines)
{
    struct nj__doc list = nj__doc_list(root, key, "");
    uint32_t n = 0;
    char *at;

    for (char *line = lines ? strtok_r(lines, "\n", &at) : NULL; line;
         line = strtok_r(NULL, "\n", &at))
        nj__doc_item_text(list, n++, line);
    return n;
}

unsigned nj__mgmt_write_diff(const struct nj_mgmt_view *v, FILE *out)
{
    struct nj__document doc;
    struct nj__doc root = nj__document_begin(&doc, NJ__DOCUMENT_JSON);
    struct diff d = {.changes = nj__doc_list(root, "changes", ""),
                     .limits = nj__doc_list(root, "limits", "")};
    struct nj_mgmt_block block[NJ_BLOCKS_MAX];
    char *errors = NULL, *restart = NULL;

    bool ok = v->hooks.diff(v->hooks.ctx, add_change, &d, &errors, &restart);
    uint32_t n = add_lines(root, "restart", restart) + d.n_changes + d.n_limits;
    add_lines(root, "errors", errors);
    n += nj_mgmt_blocks(v, block);
    nj__answer_blocks(v, NULL, root);
    nj__doc_bool(root, "equal", ok && n == 0);
    bool is_known = ok || errors;
    bool is_written = is_known && nj__document_write_json(&doc, out);
    nj__document_end(&doc);
    free(errors);
    free(restart);
    if (!is_known)
        fputs("{\"error\":\"no memory\"}\n", out);
    return !is_written ? 500 : ok ? 200 : 422;
}
