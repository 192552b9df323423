/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar --check: everything is read, nothing is started. */
#include <stdio.h>

#include "server/access_file.h"
#include "server/settings.h"

static void show_limits(const struct nj_class *c, uint32_t keys)
{
    char text[64];
    bool any = false;

    for (uint32_t i = 0; i < nj_class_n_keys(); i++) {
        const char *value = nj_class_key_show(c, i, text, sizeof text);
        if (!(keys >> i & 1) && !value)
            continue;
        printf("%s %s = %s", any ? "," : ":", nj_class_key_name(i), value ? value : "none");
        any = true;
    }
    printf(any ? "\n" : ": no limits\n");
}

static void show_hours(struct nj_hours h)
{
    if (h.from != h.to)
        printf(" %02u:%02u-%02u:%02u", h.from / 60, h.from % 60, h.to / 60, h.to % 60);
}

static void show_policy(const struct nj_policy_file *f, const struct nj_server_config *config)
{
    static const char *const by[] = {"address", "header", "cookie"};
    struct nj_policy p;
    struct nj_class server = {0};

    /* As if all classes were within their hours, and none of the sections that have some. */
    nj_policy_file_make(f, config, NULL, UINT64_MAX << NJ_POLICY_HOURS_MAX, &p);
    server.total = p.total;
    printf("server");
    show_limits(&server, 0);
    if (f->client_by == NJ_CLIENT_BY_ADDRESS)
        printf("client: by address");
    else
        printf("client: by %s %.*s, without it by address", by[f->client_by],
               (int)f->client_field.n_bytes, f->client_field.p);
    printf(": /%u of IPv4, /%u of IPv6\n", f->client_bits4, f->client_bits6);
    for (uint32_t i = 0; i < p.n_classes; i++) {
        printf("class %s", p.classes[i].name);
        show_hours(f->class_at[nj_policy_file_class(f, p.classes[i].name)].hours);
        show_limits(&p.classes[i], 0);
    }
    for (uint32_t i = 0; i < f->n_overrides; i++) {
        const struct nj_file_override *o = &f->override[i];
        printf("%s%s", o->class_index == NJ_POLICY_SERVER ? "server" : "class ",
               o->class_index == NJ_POLICY_SERVER ? "" : f->class_at[o->class_index].name);
        show_hours(o->hours);
        show_limits(&o->keys.value, o->keys.set);
    }
    for (uint32_t i = 0; i < f->n_lists; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < f->n_networks; k++)
            n += f->network[k].lists >> i & 1;
        printf("list %s: %u network%s%s\n", f->list[i], n, n == 1 ? "" : "s",
               f->list_used >> i & 1 ? "" : ", not used");
    }
}

int nj_server_check(const struct nj_server_config *config)
{
    struct nj_settings settings;
    char why[512] = "";
    int rc = nj_settings_check(&settings, config, why, sizeof why);

    if (rc == 0 && settings.config->access_log)
        rc = nj_access_file_try(settings.config->access_log, why, sizeof why);
    if (settings.faults.text)
        fputs(settings.faults.text, stderr);
    else if (rc != 0)
        fprintf(stderr, "nightjar: %s\n", why);
    else
        show_policy(settings.policy, settings.config);
    if (rc == 0 && why[0])
        puts(why);
    nj_settings_free(&settings);
    return rc == 0 ? 0 : NJ_EXIT_USAGE;
}
