/* SPDX-License-Identifier: BSD-3-Clause */
/* `diff`: the files of the configuration against what runs. */
#include <stdlib.h>

#include "ctl/ctl.h"

/* Lines of an answer, each behind a word. */
static void print_lines(FILE *out, const char *word, json_t *list)
{
    json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        fputs(word, out);
        ctl_print_text(out, json_string_value(one) ? json_string_value(one) : "?");
        fputc('\n', out);
    }
}

static void print_part(const char *title, json_t *list, const struct ctl_column *columns, size_t n)
{
    if (json_array_size(list) == 0)
        return;
    printf("%s:\n", title);
    ctl_print_table(stdout, list, columns, n);
}

static void print_diff(json_t *root)
{
    static const struct ctl_column changes[] = {
        {"section", "section", CTL_PLAIN}, {"key", "key", CTL_PLAIN},
        {"running", "running", CTL_PLAIN}, {"file_has", "in the file", CTL_PLAIN},
        {"file", "file", CTL_PLAIN},       {"line", "line", CTL_PLAIN}};
    static const struct ctl_column limits[] = {{"class", "class", CTL_PLAIN},
                                               {"key", "limit", CTL_PLAIN},
                                               {"running", "running", CTL_PLAIN},
                                               {"file_has", "in the file", CTL_PLAIN}};

    if (json_is_true(json_object_get(root, "equal")))
        puts("equal");
    print_part("changed in the file", json_object_get(root, "changes"), changes,
               NJ_ARRAY_LEN(changes));
    print_lines(stdout, "a reload does not take it: ", json_object_get(root, "restart"));
    print_part("limits changed at run time", json_object_get(root, "limits"), limits,
               NJ_ARRAY_LEN(limits));
    print_part("blocked", json_object_get(root, "blocks"), NULL, 0);
}

enum ctl_status ctl_run_diff(struct ctl *c)
{
    struct ctl_answer answer;
    char why[512];
    enum ctl_status status = CTL_UNREACHABLE;

    if (!ctl_request(c->client, "/api/v1/diff", NULL, &answer, why, sizeof why)) {
        fprintf(stderr, "nightjar ctl: ");
        ctl_print_text(stderr, why);
        fputc('\n', stderr);
        ctl_answer_free(&answer);
        return status;
    }
    json_t *root = json_loads(answer.body, 0, NULL), *errors = json_object_get(root, "errors");
    if ((answer.status != 200 && answer.status != 422) || !json_is_array(errors)) {
        ctl_print_reasons(&answer);
        status = CTL_REFUSED;
    } else {
        if (c->json) {
            json_dumpf(root, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
            putchar('\n');
        } else {
            print_diff(root);
            print_lines(stderr, "nightjar ctl: ", errors);
        }
        status = json_array_size(errors) > 0                    ? CTL_USAGE
                 : json_is_true(json_object_get(root, "equal")) ? CTL_OK
                                                                : CTL_REFUSED;
    }
    json_decref(root);
    ctl_answer_free(&answer);
    return status;
}
