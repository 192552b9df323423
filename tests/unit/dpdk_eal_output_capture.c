/* SPDX-License-Identifier: BSD-3-Clause */
/* The EAL's output is held back, and the line that names the cause is found. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_log.h>

#include "base/compiler.h"
#include "dpdk/eal_output_capture.h"

static const struct {
    const char *said, *cause;
} rows[] = {
    {"", NULL},
    {"EAL: Detected CPU lcores: 2\nEAL: Detected NUMA nodes: 1\n", NULL},
    {"EAL: Detected CPU lcores: 2\nEAL: Cannot open /dev/vfio\n", "Cannot open /dev/vfio"},
    {"EAL: FATAL: Cannot init memory\nEAL: Cannot init memory\n", "Cannot init memory"},
    {"EAL: Cannot get hugepage information.\nEAL: FATAL: Cannot init memory\n",
     "Cannot get hugepage information: reserve and mount some: dpdk-hugepages.py --setup 1G; or "
     "--no-huge "
     "-m 512"},
    {"EAL: 0000:01:00.0 cannot set up DMA remapping, error 12 (Cannot allocate memory)\n"
     "EAL: Cannot allocate memory\nEAL: DMA remapping failed\nEAL: permission denied\n",
     "0000:01:00.0 cannot set up DMA remapping, error 12 (Cannot allocate memory): too little "
     "memory "
     "may be locked: sudo prlimit --pid $$ --memlock=unlimited in this shell, or "
     "LimitMEMLOCK=infinity of systemd"},
    {"service_init: error allocating rte services array\nEAL: FATAL: rte_service_init() failed\n",
     "error allocating rte services array: EAL memory could not be had: look at hugepages, at who "
     "may "
     "write to /dev/hugepages, and at ulimit -l"},
    {"tun_alloc(): Unable to set TUNSETIFF for nj0: Operation not permitted\n",
     "Unable to set TUNSETIFF for nj0: Operation not permitted: a tap needs root or CAP_NET_ADMIN"},
    {"tun_alloc(): Unable to set TUNSETIFF for nj0: Device or resource busy\n",
     "Unable to set TUNSETIFF for nj0: Device or resource busy"},
    {"eth_dev_tap_create(): nj0: failed to create multiq qdisc.\nbond_probe(): Invalid mode\n",
     "Invalid mode"},
    {"test: unrecognized option '--nonsense'\nEAL: FATAL: Invalid EAL arguments.\n",
     "unrecognized option '--nonsense'"},
    {"EAL: FATAL: Invalid EAL arguments.\nEAL: --a is not compatible with --b\n",
     "--a is not compatible with --b"},
    {"EAL: Options allow (-a) and block (-b) can't be used at the same time\nEAL: FATAL: Invalid\n",
     "Options allow (-a) and block (-b) can't be used at the same time"},
    {"EAL: this and that fail\n\nUsage: x [options]\n  -a  an invalid value disables it\n",
     "this and that fail"},
    {"EAL: Error - exiting\nEAL: invalid corelist syntax\n", "invalid corelist syntax"},
    {"tap_setup(): Unable to create TAP interface\n", "Unable to create TAP interface"},
    {"no newline, but it failed", "no newline, but it failed"},
    {"Not enough memory: what now\n", "Not enough memory: what now"},
    {"EAL: Bus (pci) probe failed.\nEAL:   0000:01:00.0 VFIO group is not viable! Not all devices "
     "in "
     "IOMMU group bound to VFIO or unbound\nEAL: Requested device 0000:01:00.0 cannot be used\n",
     "0000:01:00.0 VFIO group is not viable! Not all devices in IOMMU group bound to VFIO or "
     "unbound: bind the other devices of its IOMMU group to vfio-pci, too"},
    {"EAL:   0000:01:00.0 failed to select IOMMU type\nEAL: Requested device cannot be used\n",
     "0000:01:00.0 failed to select IOMMU type: no IOMMU that vfio can use: switch it on "
     "(intel_iommu=on), or bind the device to uio_pci_generic; without interrupt remapping write 1 "
     "to /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts"},
    {"EAL: Requested device 0000:00:03.0 cannot be used\nEAL: Bus (pci) probe failed.\n",
     "Requested device 0000:00:03.0 cannot be used"},
    {"\n\n\nEAL: No free hugepages reported\n\n", "No free hugepages reported"},
};

Test(dpdk_eal_output_capture, cause)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        char cause[512] = "untouched";
        cr_assert(nj_eal_log_capture_stdio());
        fputs(rows[i].said, i % 2 ? stdout : stderr);
        nj_eal_log_end_get_cause(cause, sizeof cause);
        cr_expect_str_eq(cause, rows[i].cause ? rows[i].cause : "untouched", "row %zu: %s", i,
                         cause);
    }
}

/* DPDK continues after this line, so the caller asks for it later. */
Test(dpdk_eal_output_capture, memory_that_is_not_mapped)
{
    cr_expect_null(nj_eal_log_dma_error());
    nj_eal_log_capture_stdio();
    fputs("EAL: Cannot open /dev/vfio\n", stderr);
    nj_eal_log_end_get_cause(NULL, 0);
    cr_expect_null(nj_eal_log_dma_error());
    nj_eal_log_capture_stdio();
    fputs("EAL: Cannot set up DMA remapping, error 12 (Cannot allocate memory)\n", stderr);
    nj_eal_log_end_get_cause(NULL, 0);
    nj_eal_log_capture_stdio();
    nj_eal_log_end_get_cause(NULL, 0);
    cr_assert_not_null(nj_eal_log_dma_error());
    cr_expect_not_null(strstr(nj_eal_log_dma_error(), "LimitMEMLOCK=infinity"), "%s",
                       nj_eal_log_dma_error());
}

/* A crash while output is held back is reported on the original stderr of the process. */
Test(dpdk_eal_output_capture, stderr_of_the_process)
{
    struct stat before, meanwhile;

    cr_assert_eq(fstat(STDERR_FILENO, &before), 0);
    cr_expect_eq(nj_eal_log_original_stderr_fd(), STDERR_FILENO);
    nj_eal_log_capture_stdio();
    int rc = fstat(nj_eal_log_original_stderr_fd(), &meanwhile);
    nj_eal_log_end_get_cause(NULL, 0);
    cr_assert_eq(rc, 0);
    cr_expect(before.st_dev == meanwhile.st_dev && before.st_ino == meanwhile.st_ino);
    cr_expect_eq(nj_eal_log_original_stderr_fd(), STDERR_FILENO);
}

Test(dpdk_eal_output_capture, short_buffer_and_none)
{
    char cause[8];
    nj_eal_log_capture_stdio();
    fputs("EAL: Cannot do it\n", stderr);
    nj_eal_log_end_get_cause(cause, sizeof cause);
    cr_expect_str_eq(cause, "Cannot ");
    nj_eal_log_capture_stdio();
    fputs("EAL: Cannot do it\n", stderr);
    nj_eal_log_end_get_cause(NULL, 0);
}

/* Runs in a child process: the text that reaches its stdout and stderr. */
static void capture(bool verbose, char *text, size_t n_bytes)
{
    FILE *f = tmpfile();
    cr_assert(f);
    int saved[2] = {dup(1), dup(2)};
    fflush(NULL);
    dup2(fileno(f), 1);
    dup2(fileno(f), 2);
    if (verbose)
        setenv("NJ_EAL_VERBOSE", "1", 1);
    puts("before"); /* still in the buffer of stdio when the silence begins */
    nj_eal_log_capture_stdio();
    puts("within");
    if (write(2, "raw\n", 4) != 4)
        abort();
    nj_eal_log_end_get_cause(NULL, 0);
    puts("after");
    fflush(NULL);
    dup2(saved[0], 1);
    dup2(saved[1], 2);
    close(saved[0]);
    close(saved[1]);
    rewind(f);
    text[fread(text, 1, n_bytes - 1, f)] = '\0';
    fclose(f);
}

Test(dpdk_eal_output_capture, held_back)
{
    char text[256];
    capture(false, text, sizeof text);
    cr_expect_str_eq(text, "before\nafter\n");
}

Test(dpdk_eal_output_capture, shown_when_asked_for)
{
    char text[256];
    capture(true, text, sizeof text);
    cr_expect(strstr(text, "within\n"));
    cr_expect(strstr(text, "raw\n"));
    cr_expect(strncmp(text, "before\n", 7) == 0);
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

Test(dpdk_eal_output_capture, no_files_are_left_open)
{
    int before = open_files();
    for (int i = 0; i < 100; i++) {
        nj_eal_log_capture_stdio();
        nj_eal_log_end_get_cause(NULL, 0);
    }
    cr_expect_eq(open_files(), before);
}

static struct {
    char text[256];
    unsigned n_problems, n_captured;
} said;

static void keep_line(const char *line, bool is_problem, bool is_captured)
{
    size_t n = strlen(said.text);

    snprintf(said.text + n, sizeof said.text - n, "[%s]", line);
    said.n_problems += is_problem;
    said.n_captured += is_captured;
}

/* What DPDK logs while the server runs, on lcores too, is not written by the thread that logs. */
Test(dpdk_eal_output_capture, log_of_dpdk)
{
    char cause[64] = "untouched";

    nj_eal_log_redirect(keep_line);
    rte_log(RTE_LOG_ERR, RTE_LOGTYPE_EAL, "EAL: %s\n\nand more\n", "it cannot");
    rte_log(RTE_LOG_NOTICE, RTE_LOGTYPE_EAL, "EAL: it works\n");
    cr_expect_str_eq(said.text, "[EAL: it cannot][and more][EAL: it works]");
    cr_expect_eq(said.n_problems, 2);
    said.text[0] = '\0';
    cr_assert(nj_eal_log_capture_stdio());
    rte_log(RTE_LOG_ERR, RTE_LOGTYPE_EAL, "EAL: Cannot open it\n");
    nj_eal_log_end_get_cause(cause, sizeof cause);
    cr_expect_str_eq(said.text, "");
    cr_expect_str_eq(cause, "Cannot open it");
    setenv("NJ_EAL_VERBOSE", "1", 1);
    cr_assert(nj_eal_log_capture_stdio());
    rte_log(RTE_LOG_ERR, RTE_LOGTYPE_EAL, "EAL: verbose\n");
    puts("and stdout");
    nj_eal_log_end_get_cause(NULL, 0);
    cr_expect_str_eq(said.text, "[EAL: verbose][and stdout]");
    cr_expect_eq(said.n_captured, 2);
    rte_log(RTE_LOG_ERR, RTE_LOGTYPE_EAL, "EAL: after");
    cr_expect_str_eq(said.text, "[EAL: verbose][and stdout][EAL: after]");
}

/* A program that has given DPDK a stream keeps it. */
Test(dpdk_eal_output_capture, a_stream_of_the_program)
{
    FILE *own = tmpfile();
    char text[64] = "";

    cr_assert(own && rte_openlog_stream(own) == 0);
    nj_eal_log_redirect(keep_line);
    rte_log(RTE_LOG_ERR, RTE_LOGTYPE_EAL, "EAL: mine\n");
    rewind(own);
    cr_assert(fgets(text, sizeof text, own));
    cr_expect_str_eq(text, "EAL: mine\n");
    cr_expect_str_eq(said.text, "");
}
