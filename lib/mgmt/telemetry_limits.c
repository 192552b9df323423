/* SPDX-License-Identifier: BSD-3-Clause */
/* /nightjar/limits: the policy in force, and changes of it that hold until the file is read again.
 */

#include <rte_telemetry.h>

#include "dpdk/compat.h"
#include "mgmt/telemetry_commands.h"
#include "mgmt/telemetry_dict.h"

static void add_limits(struct rte_tel_data *d, const struct nj_class *c)
{
    char text[64];

    for (uint32_t i = 0; nj_class_key_name(i); i++) {
        const char *value = nj_class_key_format(c, i, text, sizeof text);
        if (value)
            rte_tel_data_add_dict_string(d, nj_class_key_name(i), value);
    }
}

/* Only configured limits, so that 32 classes fit into a response. */
static void add_policy(void *dict, const struct nj_policy *p)
{
    struct nj_class server = {.total = p->total};
    struct rte_tel_data *d = dict, *one;

    rte_tel_data_add_dict_uint(d, "version", p->version);
    if ((one = nj__telemetry_add_dict(d, "server")))
        add_limits(one, &server);
    for (uint32_t i = 0; i < p->n_classes; i++)
        if ((one = nj__telemetry_add_dict(d, "class_%s", p->classes[i].name)))
            add_limits(one, &p->classes[i]);
}

bool nj__telemetry_limits(const struct nj_mgmt_view *v, const char *params, struct rte_tel_data *d)
{
    char why[256];

    if (params && !v->hooks.change_limits(v->hooks.ctx, params, why, sizeof why)) {
        for (char *p = why; *p; p++) /* avoid characters that JSON has to escape */
            if (*p == '"' || *p == '\\' || (unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
                *p = '?';
        rte_tel_data_add_dict_string(d, "error", why);
    } else {
        nj_policies_call_with_current(v->policies, add_policy, d);
    }
    return true;
}
