/* SPDX-License-Identifier: BSD-3-Clause */
/* `limits`: the policy in force. Telemetry changes it, until the file is read again. */

#include "mgmt/answers.h"
#include "mgmt/answer_parts.h"

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
    }
    return true;
}
