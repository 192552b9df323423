/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures what DPDK prints and picks the line that names the cause of a failure. The output is
 * redirected to a memfd, because drivers and getopt() also print outside rte_log. rte_log writes to
 * a stream that this file makes with fopencookie(3). The lock of the stream also guards the
 * capture.
 */
#include "dpdk/eal_output_capture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_log.h>

#include "base/compiler.h"

#define LINE_BYTES 1024u /* a longer line of DPDK is cut */

static atomic_int real_stderr = STDERR_FILENO;

int nj_eal_log_original_stderr_fd(void)
{
    return atomic_load(&real_stderr);
}

static struct {
    int file, out, err; /* the captured output; the original stdout and stderr */
    bool on;
} capture;

/* --- DPDK's log ------------------------------------------------------------------------------ */

static FILE *stream; /* NULL: DPDK has its own */
static nj_eal_log_line_fn *on_line;

static void pass_lines(const char *text, size_t n, bool is_problem, bool is_captured)
{
    char line[LINE_BYTES];

    for (const char *end = text + n; text < end;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t n_line = (size_t)((newline ? newline : end) - text);
        snprintf(line, sizeof line, "%.*s", (int)n_line, text);
        if (n_line > 0)
            on_line(line, is_problem, is_captured);
        text += n_line + (newline != NULL);
    }
}

/* Under the lock of the stream. rte_log() flushes after each message. */
static ssize_t on_log(void *cookie, const char *text, size_t n)
{
    int level = rte_log_cur_msg_loglevel();

    (void)cookie;
    if (capture.on)
        (void)!write(capture.file, text, n);
    else
        pass_lines(text, n, level >= 0 && level <= (int)RTE_LOG_WARNING, false);
    return (ssize_t)n;
}

void nj_eal_log_redirect(nj_eal_log_line_fn *fn)
{
    on_line = fn;
    if (stream || rte_log_get_stream() != stderr)
        return;
    stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = on_log});
    if (stream)
        rte_openlog_stream(stream);
}

static void set_capturing(bool on)
{
    if (stream)
        flockfile(stream);
    capture.on = on;
    if (stream)
        funlockfile(stream);
}

/* --- the capture ----------------------------------------------------------------------------- */

bool nj_eal_log_capture_stdio(void)
{
    fflush(NULL);
    capture.file = memfd_create("dpdk-output", MFD_CLOEXEC);
    capture.out = dup(STDOUT_FILENO);
    capture.err = dup(STDERR_FILENO);
    if (capture.file < 0 || capture.out < 0 || capture.err < 0)
        return false;
    atomic_store(&real_stderr, capture.err);
    dup2(capture.file, STDOUT_FILENO);
    dup2(capture.file, STDERR_FILENO);
    set_capturing(true);
    return true;
}

/* The captured text, to be freed by the caller. NULL: no memory. */
static char *contents(int file)
{
    off_t n = lseek(file, 0, SEEK_END);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (text) {
        ssize_t got = pread(file, text, (size_t)n, 0);
        text[got > 0 ? got : 0] = '\0';
    }
    return text;
}

static bool contains_any(const char *line, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasestr(line, words[i]))
            return true;
    return false;
}

#define NO_DMA "cannot set up DMA remapping"

/* Causes in DPDK's words, each with a remedy. */
static const struct {
    const char *said, *and_said, *advice; /* and_said NULL: `said` alone identifies the cause */
} known[] = {
    {NO_DMA ", error 12", NULL,
     "too little memory may be locked: sudo prlimit --pid $$ --memlock=unlimited in this shell, "
     "or LimitMEMLOCK=infinity of systemd"},
    {"failed to select IOMMU type", NULL,
     "no IOMMU that vfio can use: switch it on (intel_iommu=on), or bind the device to "
     "uio_pci_generic; without interrupt remapping write 1 to "
     "/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts"},
    {"group is not viable", NULL, "bind the other devices of its IOMMU group to vfio-pci, too"},
    {"TUNSETIFF", "not permitted", "a tap needs root or CAP_NET_ADMIN"},
    {"rte services array", NULL,
     "EAL memory could not be had: look at hugepages, at who may write to "
     "/dev/hugepages, and at ulimit -l"},
    {"hugepage information", NULL,
     "reserve and mount some: dpdk-hugepages.py --setup 1G; or --no-huge "
     "-m 512"},
};

static const char *advice_for(const char *line)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(known); i++)
        if (strcasestr(line, known[i].said) &&
            (!known[i].and_said || strcasestr(line, known[i].and_said)))
            return known[i].advice;
    return NULL;
}

/* How likely the line names the cause. getopt's messages are the most exact; a "FATAL" line mostly
 * repeats an earlier one. */
static int rank_line(const char *line)
{
    static const char *const exact[] = {
        "unrecognized option", "invalid option", "requires an argument", "invalid corelist",
        "invalid coremask",    "invalid value",  "cannot parse",         "is not present",
        "not permitted",       "permission",     "not compatible",       "can't be used",
        "is ignored, because", "only supported"};
    static const char *const cause[] = {"cannot",     "fail",    "error", "unable",
                                        "not enough", "no free", "refus", "invalid"};
    if (advice_for(line))
        return 4;
    if (strcasestr(line, "multiq qdisc"))
        return 0; /* net_tap works without it */
    if (contains_any(line, exact, NJ_ARRAY_LEN(exact)))
        return 3;
    if (contains_any(line, cause, NJ_ARRAY_LEN(cause)))
        return strstr(line, "FATAL") ? 1 : 2;
    return 0;
}

/* Lines begin with the library's name or the function's, "EAL: " or "tap_setup(): ". */
static const char *without_prefix(const char *line)
{
    const char *colon = strstr(line, ": ");
    const char *space = strchr(line, ' ');
    const char *text = colon && space > colon ? colon + 2 : line;
    return text + strspn(text, " ");
}

/* Copies the first line of the highest rank. Stops at "Usage: ": the EAL prints its list of options
 * after an option error. Splits `text`. */
static void find_cause(char *text, char *cause, size_t cause_bytes)
{
    int best = 0;
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "Usage: ", 7) == 0)
            break;
        int w = rank_line(line);
        if (w <= best)
            continue;
        best = w;
        const char *advice = advice_for(line);
        const char *message = without_prefix(line);
        size_t n = strlen(message);
        if (advice && n > 0 && message[n - 1] == '.')
            n--;
        snprintf(cause, cause_bytes, "%.*s%s%s", (int)n, message, advice ? ": " : "",
                 advice ? advice : "");
    }
}

static char unmapped[384];

const char *nj_eal_log_dma_error(void)
{
    return *unmapped ? unmapped : NULL;
}

/* Splits `text`. */
static void take_cause(char *text, char *cause, size_t cause_bytes)
{
    char line[sizeof unmapped] = "";

    find_cause(text, line, sizeof line);
    if (strcasestr(line, NO_DMA))
        snprintf(unmapped, sizeof unmapped, "%s", line);
    if (cause && *line)
        snprintf(cause, cause_bytes, "%s", line);
}

void nj_eal_log_end_get_cause(char *cause, size_t cause_bytes)
{
    if (!capture.on)
        return;
    fflush(NULL);
    set_capturing(false);
    dup2(capture.out, STDOUT_FILENO);
    dup2(capture.err, STDERR_FILENO);
    atomic_store(&real_stderr, STDERR_FILENO);
    close(capture.out);
    close(capture.err);
    char *text = contents(capture.file);
    close(capture.file);
    if (text && getenv("NJ_EAL_VERBOSE")) {
        if (on_line)
            pass_lines(text, strlen(text), false, true);
        else
            fputs(text, stderr);
    }
    if (text)
        take_cause(text, cause, cause_bytes);
    free(text);
}
