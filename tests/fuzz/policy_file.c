/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: any file of the configuration, without includes. It is rejected with an error, or
 * every policy compiled from it keeps its limits, and its EAL arguments are joined. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/eal_args.h"
#include "config/policy_file.h"
#include "http/proto/path.h"

static void require(int cond)
{
    if (!cond)
        abort();
}

#define NAME "@@the policy@@"

/* Byte by byte, so that the fuzzer does not learn the name from a comparison. */
static int begins_with(const char *text, const char *with)
{
    while (*with && *text == *with) {
        text++;
        with++;
    }
    return *with == '\0';
}

static void check_rule(const struct nj_policy *p, const struct nj_class_rule *r)
{
    require(r->class_index > 0 && r->class_index < p->n_classes);
    require(r->path_prefix.n_bytes < NJ_PATH_PREFIX_MAX);
    require(r->path_prefix.n_bytes == 0 || nj_path_is_plain(r->path_prefix));
    require(r->path_prefix.n_bytes || r->host.n_bytes || r->lists || r->header.n_bytes);
}

static void check_policy(const struct nj_policy *p)
{
    require(p->n_classes >= 1 && p->n_classes <= NJ_CLASSES_MAX);
    require(p->n_rules <= NJ_CLASS_RULES_MAX);
    for (uint32_t i = 0; i < p->n_classes; i++) {
        const struct nj_class *c = &p->classes[i];
        require(c->name[0] && memchr(c->name, '\0', sizeof c->name));
        require(c->total.ceiling == 0 || c->total.rate <= c->total.ceiling);
        require(c->client.ceiling == 0 || c->client.rate <= c->client.ceiling);
    }
    for (uint32_t i = 0; i < p->n_rules; i++)
        check_rule(p, &p->rules[i]);
}

static void join_arguments(const struct nj_policy_file *f)
{
    char program[] = "program", option[] = "-l", value[] = "1", why[256] = "";
    char *argv[] = {program, option, value};
    struct nj_presets presets;

    int rc = nj_eal_args_expand(&presets, f, 3, argv, why, sizeof why);
    require((rc != 0) == (why[0] != '\0'));
    for (int i = 0; rc == 0 && i < presets.argc; i++)
        require(presets.argv[i] != NULL);
    nj_presets_free(&presets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const struct nj_route routes[] = {{.path = "/x"}, {.path = "lookup"}};
    static struct nj_policy p;
    struct nj_server_config config;
    struct nj_diags faults = {0};
    char *text = malloc(n_bytes + 1);

    require(text != NULL);
    memcpy(text, data, n_bytes);
    nj_server_config_init(&config);
    config.routes = routes;
    config.n_routes = 2;
    struct nj_policy_file *f = nj_policy_file_parse(NAME, text, n_bytes, &config, &faults);
    free(text);
    require((f != NULL) == (faults.n == 0));
    /* Each error names a line. */
    for (const char *line = faults.text; line && *line; line = strchr(line, '\n') + 1)
        require(!begins_with(line, NAME ": "));
    for (uint32_t minute = 0; f && minute < 1440; minute += 97) {
        nj_policy_compile(f, &config, NULL, nj_policy_active_hours_mask(f, minute), &p);
        check_policy(&p);
    }
    if (f)
        join_arguments(f);
    nj_policy_file_free(f);
    nj_diags_free(&faults);
    return 0;
}
