/* SPDX-License-Identifier: BSD-3-Clause */
/* nj-downloads: command line and output. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load.h"

static const char USAGE[] =
    "usage: nj-downloads [options] --path /FILE [--path ...] ADDRESS [PORT]\n"
    "\n"
    "  --downloads N        concurrent downloads [1]\n"
    "  --connections N      connections, which downloads use in turn [one for each]\n"
    "  --path /FILE         path of the requests; several: in turn\n"
    "  --check FILE         expected content of the path of the same number, byte by byte\n"
    "  --method M           [GET]\n"
    "  --field 'NAME: V'    an additional field of each request\n"
    "  --range BYTES        request ranges of this size: the i-th download of a path requests the\n"
    "                       i-th range\n"
    "  --leave BYTES        reset each stream after 1 to BYTES bytes, at random [never]\n"
    "  --seed N             seed of --leave [0]\n"
    "  --from ADDRESS       source address of the connections; several: in turn\n"
    "  --ramp MS            time between the starts of two downloads [0: all at once]\n"
    "  --settle S           time from the last start to the beginning of the steady window [1]\n"
    "  --hold S             length of the steady window; the run ends with it [5]\n"
    "  --repeat N           requests of each download, one after another [0: until the end]\n"
    "  --pause MS           time between two requests of a download [0]\n"
    "  --window BYTES       window of a stream; the window of a connection is the maximum [1 MiB]\n"
    "  --rcvbuf BYTES       receive buffer of a socket [the kernel's default]\n"
    "  --never-read KIND    clients that never read a whole response. stop: do not read the\n"
    "                       socket. stream: windows of streams are 0. connection: its window is\n"
    "                       never enlarged. dribble: windows of streams are 0 and get a byte\n"
    "                       every --every. sip: read --sip bytes of the socket every --every\n"
    "  --every MS           interval of dribble and sip [100]\n"
    "  --sip BYTES          bytes of a read of sip [1]\n"
    "  --bin MS             interval of the series [10]\n"
    "  --rows FILE          write a line of CSV for each request: download, path, downloads that\n"
    "                       had started, time of the request (us since the start), us to the\n"
    "                       first byte (-1: no byte), us to the end, bytes, status, outcome\n"
    "\n"
    "Prints `steady` and the time (ns, CLOCK_MONOTONIC) when the window begins, and a line of\n"
    "JSON at the end.\n";

static const char *const TEXTS[] = {"path",   "check",      "from", "field",
                                    "method", "never-read", "rows"};
#define NUMBER(name, field, factor)                                                                \
    {                                                                                              \
        name, offsetof(struct load_options, field), sizeof(((struct load_options *)0)->field),     \
            factor                                                                                 \
    }
static const struct number {
    const char *name;
    size_t at, n_bytes;
    double factor;
} NUMBERS[] = {
    NUMBER("downloads", n_slots, 1), NUMBER("connections", n_conns, 1), NUMBER("range", range, 1),
    NUMBER("ramp", ramp, 1e6),       NUMBER("settle", settle, 1e9),     NUMBER("hold", hold, 1e9),
    NUMBER("pause", pause, 1e6),     NUMBER("repeat", repeat, 1),       NUMBER("window", window, 1),
    NUMBER("rcvbuf", rcvbuf, 1),     NUMBER("every", every, 1e6),       NUMBER("sip", sip_bytes, 1),
    NUMBER("bin", bin, 1e6),         NUMBER("leave", leave, 1),         NUMBER("seed", seed, 1),
};
#define N_TEXTS   (sizeof TEXTS / sizeof TEXTS[0])
#define N_NUMBERS (sizeof NUMBERS / sizeof NUMBERS[0])
#define OPT       256 /* getopt's value of the first option of TEXTS; then those of NUMBERS */

static int usage(const char *error, const char *argument)
{
    fprintf(stderr, "nj-downloads: %s%s\n\n%s", error, argument, USAGE);
    return 2;
}

static bool parse_addr(const char *text, uint16_t port, union load_addr *a)
{
    memset(a, 0, sizeof *a);
    if (inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1) {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons(port);
        return true;
    }
    a->v4.sin_family = AF_INET;
    a->v4.sin_port = htons(port);
    return inet_pton(AF_INET, text, &a->v4.sin_addr) == 1;
}

static bool parse_manner(const char *text, enum load_manner *m)
{
    static const char *const KINDS[] = {[LOAD_STOPS] = "stop",
                                        [LOAD_NO_STREAM] = "stream",
                                        [LOAD_NO_CONN] = "connection",
                                        [LOAD_DRIBBLES] = "dribble",
                                        [LOAD_SIPS] = "sip"};

    for (*m = LOAD_STOPS; *m <= LOAD_SIPS; (*m)++)
        if (strcmp(text, KINDS[*m]) == 0)
            return true;
    return false;
}

static bool map_file(const char *path, struct load_file *f)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st))
        return false;
    f->n_bytes = (size_t)st.st_size;
    f->data = mmap(NULL, f->n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return f->data != MAP_FAILED;
}

static bool add_field(struct load_options *o, char *text)
{
    char *colon = strchr(text, ':');

    if (!colon || o->n_fields == LOAD_FIELDS_MAX)
        return false;
    *colon = 0;
    char *value = colon + 1 + strspn(colon + 1, " ");
    memmove(colon + 1, value, strlen(value) + 1);
    o->fields[o->n_fields++] = text;
    return true;
}

/* Sets an option of TEXTS. False: the value is invalid, or the option was given too often. */
static bool set_text(struct load *l, const char *name, char *text)
{
    struct load_options *o = &l->o;

    if (strcmp(name, "path") == 0)
        return o->n_paths < LOAD_PATHS_MAX && (o->paths[o->n_paths++] = text);
    if (strcmp(name, "check") == 0)
        return o->n_files < LOAD_PATHS_MAX && map_file(text, &o->files[o->n_files++]);
    if (strcmp(name, "from") == 0)
        return o->n_from < LOAD_FROM_MAX && parse_addr(text, 0, &o->from[o->n_from++]);
    if (strcmp(name, "field") == 0)
        return add_field(o, text);
    if (strcmp(name, "method") == 0)
        return (o->method = text);
    if (strcmp(name, "never-read") == 0)
        return parse_manner(text, &o->manner);
    return (l->rows = fopen(text, "we"));
}

/* Sets an option of NUMBERS. False: the value is not a number, or negative. */
static bool set_number(struct load_options *o, const struct number *number, const char *text)
{
    char *end, *field = (char *)o + number->at;
    double value = strtod(text, &end) * number->factor;

    if (*end || end == text || !(value >= 0))
        return false;
    if (number->n_bytes == sizeof(uint32_t)) {
        uint32_t narrow = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
        memcpy(field, &narrow, sizeof narrow);
    } else {
        uint64_t wide = value < 1e18 ? (uint64_t)value : (uint64_t)1e18;
        memcpy(field, &wide, sizeof wide);
    }
    return true;
}

/* Returns the error, or NULL if the options are valid. */
static const char *error_of(const struct load_options *o)
{
    if (!o->n_paths)
        return "--path is missing";
    if (!o->n_slots || o->n_slots > LOAD_SLOTS_MAX || o->n_conns > o->n_slots)
        return "expected 1 to 131072 downloads, and at most as many connections";
    if (!o->bin || !o->every || !o->sip_bytes || o->sip_bytes > LOAD_READ_BYTES)
        return "expected --bin, --every and --sip above 0, and --sip up to 262144";
    return NULL;
}

static int options(struct load *l, int argc, char **argv)
{
    struct option known[N_TEXTS + N_NUMBERS + 1] = {0};
    struct load_options *o = &l->o;

    for (uint32_t i = 0; i < N_TEXTS + N_NUMBERS; i++)
        known[i] = (struct option){i < N_TEXTS ? TEXTS[i] : NUMBERS[i - N_TEXTS].name,
                                   required_argument, NULL, OPT + (int)i};
    *o = (struct load_options){.method = "GET",
                               .n_slots = 1,
                               .settle = NJ_SEC,
                               .hold = 5 * NJ_SEC,
                               .window = 1 << 20,
                               .every = 100 * NJ_MS,
                               .sip_bytes = 1,
                               .bin = 10 * NJ_MS};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c < OPT)
            return usage("", "invalid option");
        uint32_t i = (uint32_t)c - OPT;
        if (i < N_TEXTS ? !set_text(l, TEXTS[i], optarg)
                        : !set_number(o, &NUMBERS[i - N_TEXTS], optarg))
            return usage("invalid value: --", known[i].name);
    }
    if (argc - optind < 1 || argc - optind > 2)
        return usage("", "expected an address and optionally a port");
    uint16_t port = argc - optind == 2 ? (uint16_t)atoi(argv[optind + 1]) : 80;
    if (!parse_addr(argv[optind], port, &o->to))
        return usage("not an address: ", argv[optind]);
    snprintf(o->authority, sizeof o->authority, "nightjar");
    o->n_conns = o->n_conns ? o->n_conns : o->n_slots;
    const char *error = error_of(o);
    return error ? usage("", error) : 0;
}

static void steady(struct load *l)
{
    printf("steady %llu\n", (unsigned long long)l->now);
    fflush(stdout);
}

static void print_series(const struct load *l)
{
    const struct nj_meter *m = &l->meter;

    printf(", \"bins\": [");
    for (uint32_t g = 0; g < l->o.n_paths; g++) {
        printf("%s[", g ? ", " : "");
        for (uint32_t i = 0; i < m->n_bins; i++)
            printf("%s%llu", i ? "," : "", (unsigned long long)m->bins[i][g]);
        printf("]");
    }
    printf("], \"window_bytes\": [");
    for (uint32_t i = 0; i < l->o.n_slots; i++)
        printf("%s%llu", i ? "," : "", (unsigned long long)l->slots[i].window_bytes);
    printf("]");
}

static void print_result(const struct load *l)
{
    const struct load_counts *c = &l->counts;
    const struct nj_meter *m = &l->meter;
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    printf("{\"began\": %llu, \"seconds\": %.6f, ", (unsigned long long)l->began,
           (double)(l->now - l->began) / (double)NJ_SEC);
    printf("\"window\": [%llu, %llu], \"window_total\": %llu, \"max_100ms\": %llu, "
           "\"max_100ms_at\": %llu, ",
           (unsigned long long)(m->from == NJ_NEVER ? 0 : m->from),
           (unsigned long long)(m->from == NJ_NEVER ? 0 : m->to),
           (unsigned long long)m->window_bytes, (unsigned long long)m->in_span_max,
           (unsigned long long)m->in_span_max_at);
    printf("\"requests\": %llu, \"done\": %llu, \"left\": %llu, \"other_status\": %llu, \"reset\": "
           "%llu, "
           "\"closed\": %llu, \"mismatch\": %llu, \"payload_bytes\": %llu, ",
           (unsigned long long)c->requests, (unsigned long long)c->done,
           (unsigned long long)c->left, (unsigned long long)c->other_status,
           (unsigned long long)c->reset, (unsigned long long)c->closed,
           (unsigned long long)c->mismatch, (unsigned long long)c->payload_bytes);
    printf("\"connected\": %u, \"refused\": %u, \"gone\": %u, \"stall_us\": %llu, "
           "\"stall_window_us\": %llu, \"cpu_seconds\": %.3f, \"bin_ns\": %llu",
           c->connected, c->refused, c->gone, (unsigned long long)(l->stall_max / NJ_US),
           (unsigned long long)(l->stall_window_max / NJ_US),
           (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
               (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6,
           (unsigned long long)m->bin);
    print_series(l);
    printf("}\n");
}

/* Raises the limit of open files: each connection is a file. */
static void allow_files(void)
{
    struct rlimit r = {LOAD_SLOTS_MAX + 64, LOAD_SLOTS_MAX + 64};

    if (setrlimit(RLIMIT_NOFILE, &r) == 0)
        return;
    getrlimit(RLIMIT_NOFILE, &r);
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

int main(int argc, char **argv)
{
    static struct load l;
    int status = options(&l, argc, argv);

    if (status)
        return status;
    allow_files();
    if (!load_init(&l)) {
        fprintf(stderr, "nj-downloads: out of memory\n");
        return 1;
    }
    load_run(&l, steady);
    print_result(&l);
    if (l.rows && fclose(l.rows)) {
        fprintf(stderr, "nj-downloads: the rows could not be written\n");
        return 1;
    }
    return 0;
}
