/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor on a host without a fault, and on hosts that lack something. */
#include <criterion/criterion.h>

#include "doctor_rig.h"

TestSuite(app_doctor, .init = good_host, .fini = scratch_remove);

Test(app_doctor, good)
{
    cr_expect_eq(doctor(), 0, "%s", said);
    cr_expect_not_null(strstr(said, "0 errors, 0 warnings\n"), "%s", said);
    says("hugepages/node0", "ok", "512 pages of 2MiB, 512 free; 0 pages of 1GiB, 0 free", NULL);
    says("hugepages/boot", "ok", "by /etc/sysctl.d/80-huge.conf", NULL);
    says("hugetlbfs", "ok", "/dev/hugepages (2MiB)", NULL);
    says("transparent-hugepages", "ok", "[madvise]", NULL);
    says("iommu", "ok", "on, 3 groups, dmar0", NULL);
    says("interrupt-remapping", "ok", "on", NULL);
    says("module/vfio-pci", "ok", "loaded", NULL);
    says("module/uio_pci_generic", "ok", "not needed", NULL);
    says("default-route", "ok", "eno1", NULL);
    says("nic/" KEPT, "ok",
         "8086:10fb, driver e1000e, interface eno1, link of 10000 Mbit/s, NUMA node 0, IOMMU group "
         "11: carries the default route (eno1), never bind it",
         NULL);
    says("nic/" BOUND, "ok", "ready, EAL argument -a " BOUND, NULL);
    says("nics", "ok", "1 of 2 NICs", NULL);
    says("lcores", "ok", "CPUs 2-3 of 0-3", NULL);
    says("isolcpus", "ok", "2-3", NULL);
    says("nohz_full", "ok", "2-3", NULL);
    says("rcu_nocbs", "ok", "2-3", NULL);
    says("governor", "ok", "performance", NULL);
    says("smt", "ok", "off", NULL);
    says("user", "ok", "nj", NULL);
    says("memlock", "ok", "unlimited for nj by /etc/security/limits.d/nj.conf", NULL);
    says("permission/dev/vfio/12", "ok", "nj may read and write", NULL);
}

/* --- memory --------------------------------------------------------------------------------- */

Test(app_doctor, no_huge_pages)
{
    put("0", "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages");
    put("sysfs /sys sysfs rw 0 0", "/proc/mounts");
    put("# vm.nr_hugepages = 512\nvm.nr_hugepages = 0", "/etc/sysctl.d/80-huge.conf");
    cr_expect_eq(doctor(), 1);
    says("hugepages/node0", "error", "0 pages of 2MiB, 0 free",
         "echo 512 | tee "
         "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages\n");
    says("hugepages/boot", "warning", "not reserved at boot",
         "echo vm.nr_hugepages=512 | tee /etc/sysctl.d/80-nightjar.conf\n");
    says("hugetlbfs", "error", "not mounted for pages of 2MiB",
         "mkdir -p /dev/hugepages\n"
         "mount -t hugetlbfs -o pagesize=2048K nodev /dev/hugepages\n");
}

/* The advice is at most half of the free memory, unless the lcores need more and it is available.
 */
Test(app_doctor, as_many_pages_as_fit)
{
    static const char *const file =
        "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
    char advice[256];

    put("0", "%s", file);
    put("MemAvailable:    1000000 kB\nHugepagesize:       2048 kB", "/proc/meminfo");
    doctor();
    snprintf(advice, sizeof advice, "echo 245 | tee %s\n", file);
    says("hugepages/node0", "error", "0 pages", advice);
    put("MemAvailable:     300000 kB\nHugepagesize:       2048 kB", "/proc/meminfo");
    doctor();
    snprintf(advice, sizeof advice, "echo 100 | tee %s\n", file);
    says("hugepages/node0", "error", "0 pages", advice);
    put("Node 0 MemFree:   150000 kB\nNode 0 FilePages:  50000 kB",
        "/sys/devices/system/node/node0/meminfo");
    take_away("/etc/sysctl.d/80-huge.conf");
    doctor();
    says("hugepages/node0", "error",
         "the EAL needs 200MiB here, and only 195MiB of memory are available", "# free memory\n");
    says("hugepages/boot", "warning", "not reserved", NULL);
    put("MemAvailable:    8000000 kB\nHugepagesize:       2048 kB", "/proc/meminfo");
    put("Node 0 MemFree:   160000 kB\nNode 0 FilePages:  50000 kB",
        "/sys/devices/system/node/node0/meminfo");
    doctor();
    says("hugepages/node0", "error", "0 pages", advice);
}

/* The advice is not below the current number of pages, nor below the need: 8 lcores need 800, of
 * which some exist. */
Test(app_doctor, as_many_pages_as_are_needed)
{
    struct nj_doctor_config config = {.root = scratch, .user = "nj", .lcores = "0-7"};
    static const char *const node = "/sys/devices/system/node/node0/hugepages";
    char advice[256];

    put("700", "%s/hugepages-2048kB/nr_hugepages", node);
    take_away("/etc/sysctl.d/80-huge.conf");
    ask(&config);
    snprintf(advice, sizeof advice, "echo 800 | tee %s/hugepages-2048kB/nr_hugepages\n", node);
    says("hugepages/node0", "warning", "700 pages", advice);
    says("hugepages/boot", "warning", "not reserved",
         "echo vm.nr_hugepages=800 | tee /etc/sysctl.d/80-nightjar.conf\n");
    put("200", "%s/hugepages-2048kB/nr_hugepages", node);
    put("1", "%s/hugepages-1048576kB/nr_hugepages", node);
    ask(&config);
    snprintf(advice, sizeof advice, "echo 512 | tee %s/hugepages-2048kB/nr_hugepages\n", node);
    says("hugepages/node0", "warning", "200 pages", advice);
    put("0", "%s/hugepages-1048576kB/nr_hugepages", node);
    put("MemAvailable:    1000000 kB\nHugepagesize:       2048 kB", "/proc/meminfo");
    ask(&config);
    says("hugepages/node0", "warning", "and only 976MiB of memory are available",
         "# free memory, or give nightjar fewer lcores\n");
}

Test(app_doctor, huge_pages_on_another_node_than_the_nic)
{
    put("0", "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages");
    put("0", "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages");
    cr_expect_eq(doctor(), 0);
    says("hugepages/node1", "ok", "0 pages", NULL);
    put_device("0000:81:00.0", "0x020000", "ixgbe", 20); /* no user uses that one */
    put("1", "/sys/bus/pci/devices/0000:81:00.0/numa_node");
    doctor();
    says("hugepages/node1", "ok", "0 pages", NULL);
    put("1", "/sys/bus/pci/devices/%s/numa_node", BOUND);
    cr_expect_eq(doctor(), 0);
    says("hugepages/node0", "ok", "512 pages", NULL);
    says("hugepages/node1", "warning", "the EAL needs 200MiB here",
         "echo 512 | tee "
         "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages\n");
}

Test(app_doctor, huge_pages_that_others_use)
{
    put("7", "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages");
    cr_expect_eq(doctor(), 0);
    says("hugepages/node0", "warning", "7 free", "*");
    cr_expect_not_null(strstr(
        said,
        ", 1 warning: nightjar can start on a NIC of this host once more huge pages are free\n"));
    put_link("nr_hugepages",
             "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages");
    ask(&(struct nj_doctor_config){.root = scratch, .user = "nj", .lcores = "1-3"});
    says("hugepages/node0", "ok", "512 free", NULL);
    put("299", "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages");
    ask(&(struct nj_doctor_config){.root = scratch, .user = "nj", .lcores = "1-3"});
    says("hugepages/node0", "warning", "the EAL needs 600MiB here", "*");
}

Test(app_doctor, large_pages_without_a_mount)
{
    put("2", "/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages");
    cr_expect_eq(doctor(), 0);
    says("hugetlbfs", "warning", "not mounted for pages of 1GiB",
         "mkdir -p /dev/hugepages-1024M\n"
         "mount -t hugetlbfs -o pagesize=1048576K nodev /dev/hugepages-1024M\n");
    put("nodev /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n"
        "nodev /dev/hugepages-1024M hugetlbfs rw,pagesize=1024M 0 0",
        "/proc/mounts");
    put_folder(0777, "/dev/hugepages-1024M");
    cr_expect_eq(doctor(), 0);
    says("hugetlbfs", "ok", "/dev/hugepages (2MiB), /dev/hugepages-1024M (1GiB)", NULL);
}

Test(app_doctor, kernel_without_numa)
{
    take_away("/sys/devices/system/node");
    put("512", "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    put("512", "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    put("-1", "/sys/bus/pci/devices/%s/numa_node", BOUND);
    cr_expect_eq(doctor(), 0);
    says("hugepages", "ok", "512 pages of 2MiB", NULL);
}

/* The kernel's global settings, if /sys has none for the node or the size. */
Test(app_doctor, huge_pages_of_the_kernel)
{
    take_away("/sys/devices/system/node");
    put("MemAvailable: 8000000 kB\nHugePages_Total: 50\nHugePages_Free: 50\nHugepagesize: 2048 kB",
        "/proc/meminfo");
    put("50", "/proc/sys/vm/nr_hugepages");
    cr_expect_eq(doctor(), 1);
    says("hugepages", "error", "50 pages of 2MiB, 50 free: the EAL needs 200MiB",
         "echo 512 | tee /proc/sys/vm/nr_hugepages\n");
    put("HugePages_Total: 50\nHugePages_Free: 50\nHugepagesize: 0 kB", "/proc/meminfo");
    doctor();
    says("hugepages", "error", "50 pages of 2MiB", "echo 512 | tee /proc/sys/vm/nr_hugepages\n");
    put("MemAvailable: 8000000 kB\nHugePages_Total: 512\nHugePages_Free: 9\nHugepagesize: 2048 kB",
        "/proc/meminfo");
    cr_expect_eq(doctor(), 0);
    says("hugepages", "warning", "512 pages of 2MiB, 9 free", "*");
    put("MemAvailable: 8000000 kB", "/proc/meminfo");
    take_away("/proc/sys/vm");
    cr_expect_eq(doctor(), 1);
    says("hugepages", "error", "the kernel has none",
         "# boot a kernel with huge pages (CONFIG_HUGETLBFS)\n# (untested)\n");
}

/* The NIC's node is not there, or has no memory: its pages come from one that has. */
Test(app_doctor, node_of_the_nic_without_huge_pages)
{
    put("3", "/sys/bus/pci/devices/%s/numa_node", BOUND);
    put_folder(0755, "/sys/devices/system/node/node3");
    put("0", "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages");
    cr_expect_eq(doctor(), 1);
    says("hugepages/node0", "error", "0 pages",
         "echo 512 | tee "
         "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages\n");
    says("hugepages/node3", "ok", "the kernel has none", NULL);
    take_away("/sys/devices/system/node/node3");
    cr_expect_eq(doctor(), 1);
    says("hugepages/node0", "error", "0 pages", "*");
}

Test(app_doctor, huge_pages_at_boot)
{
    static const struct {
        const char *path, *text, *says;
    } rows[] = {
        {"/etc/sysctl.conf", "vm/nr_hugepages=7", "by /etc/sysctl.conf"},
        {"/usr/lib/sysctl.d/x.conf", "-vm.nr_hugepages = 7 ", "by /usr/lib/sysctl.d/x.conf"},
        {"/etc/tmpfiles.d/h.conf", "w /sys/devices/x/nr_hugepages - - - - 7", "by /etc/tmpfiles.d"},
        {"/proc/cmdline", "quiet hugepagesz=1G hugepages=4", "(hugepages=4)"},
        {"/proc/cmdline", "quiet hugepages=0:0,1:2", "(hugepages=0:0,1:2)"},
        {"/etc/default/grub", "GRUB_CMDLINE_LINUX=\"hugepages=7\"", "by /etc/default/grub"},
        {"/etc/default/grub.d/h.cfg", "GRUB_CMDLINE_LINUX=\"hugepages=7\"",
         "by /etc/default/grub.d/h.cfg"},
        {"/etc/sysctl.d/no", "vm.nr_hugepages=7", NULL},
        {"/etc/sysctl.conf", "vm.nr_overcommit_hugepages=7", NULL},
        {"/proc/cmdline", "quiet hugepages=0", NULL},
        {"/proc/cmdline", "quiet nohugepages=7", NULL},
        {"/proc/cmdline", "quiet hugepages=0:0,1:0", NULL},
        {"/proc/cmdline", "hugepagesz=2M hugepages=7 hugepagesz=1G hugepages=4", "(hugepages=7)"},
        {"/proc/cmdline", "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=7", "(hugepages=7)"},
        {"/proc/cmdline", "hugepagesz=2M hugepages=7 hugepagesz=1G hugepages=0", "(hugepages=7)"},
        {"/proc/cmdline", "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=0", "(hugepages=4)"},
        {"/etc/default/grub", "#GRUB_CMDLINE_LINUX=\"hugepages=7\"", NULL},
        {"/etc/default/grub", "GRUB_CMDLINE_LINUX=\"hugepages=0\"", NULL},
        {"/etc/sysctl.conf", "  # vm.nr_hugepages=7", NULL},
        {"/etc/sysctl.conf", "\t;vm.nr_hugepages=7", NULL},
        {"/etc/sysctl.conf", "  vm.nr_hugepages=7", "by /etc/sysctl.conf"},
        {"/etc/tmpfiles.d/h.conf", "  # w /sys/devices/x/nr_hugepages - - - - 7", NULL},
        {"/usr/local/lib/sysctl.d/x.conf", "vm.nr_hugepages=7", "by /usr/local/lib/sysctl.d/x"},
        {"/run/sysctl.d/x.conf", "vm.nr_hugepages=7", "by /run/sysctl.d/x.conf"},
    };

    take_away("/etc/sysctl.d/80-huge.conf");
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        put(rows[i].text, "%s", rows[i].path);
        doctor();
        says("hugepages/boot", rows[i].says ? "ok" : "warning",
             rows[i].says ? rows[i].says : "not reserved", rows[i].says ? NULL : "*");
        take_away("%s", rows[i].path);
    }
}

/* The last setting wins, in the order of file names. A file hides others of the same name. */
Test(app_doctor, settings_at_boot_one_after_the_other)
{
    put("vm.nr_hugepages = 0", "/usr/lib/sysctl.d/90.conf");
    doctor();
    says("hugepages/boot", "warning", "not reserved",
         "echo vm.nr_hugepages=512 | tee /etc/sysctl.d/80-nightjar.conf\n"
         "# /usr/lib/sysctl.d/90.conf sets them to 0 after that: remove its line\n");
    put("vm.nr_hugepages = 7", "/etc/sysctl.d/100.conf"); /* before 80 and 90 */
    doctor();
    says("hugepages/boot", "warning", "not reserved", "*");
    put("", "/run/sysctl.d/90.conf");
    doctor();
    says("hugepages/boot", "ok", "by /etc/sysctl.d/80-huge.conf", NULL);
    put("vm.nr_hugepages = 7\nvm.nr_hugepages = 0", "/etc/sysctl.conf");
    put("hugepages=7", "/proc/cmdline");
    doctor();
    says("hugepages/boot", "warning", "not reserved", "*");
    put("w /sys/devices/x/nr_hugepages - - - - 7", "/run/tmpfiles.d/h.conf");
    doctor();
    says("hugepages/boot", "ok", "by /run/tmpfiles.d/h.conf", NULL);
}

Test(app_doctor, transparent_huge_pages_off)
{
    put("always madvise [never]", "/sys/kernel/mm/transparent_hugepage/enabled");
    cr_expect_eq(doctor(), 0);
    says("transparent-hugepages", "warning", "small pages",
         "echo madvise | tee /sys/kernel/mm/transparent_hugepage/enabled\n");
}

/* --- CPUs ----------------------------------------------------------------------------------- */

#define SET_CPUS                                                                                   \
    "# add to the kernel's command line, and reboot: isolcpus=1-3 nohz_full=1-3 rcu_nocbs=1-3\n# " \
    "(untested)\n"

Test(app_doctor, cpus_that_all_share)
{
    put("", "/sys/devices/system/cpu/isolated");
    put("(null)", "/sys/devices/system/cpu/nohz_full");
    put("quiet", "/proc/cmdline");
    cr_expect_eq(doctor(), 0);
    says("lcores", "ok", "CPUs 1-3 of 0-3 (assumed", NULL);
    says("isolcpus", "warning", "lcores 1-3 are not included", SET_CPUS);
    says("nohz_full", "warning", "lcores 1-3 are not included", SET_CPUS);
    says("rcu_nocbs", "warning", "lcores 1-3 are not included", SET_CPUS);
    put("quiet rcu_nocbs", "/proc/cmdline");
    doctor();
    says("rcu_nocbs", "ok", "0-3", NULL);
}

/* As the kernel's command line has them. */
Test(app_doctor, lists_of_cpus)
{
    static const struct {
        const char *list, *says;
    } rows[] = {
        {"1-N", "1-3"},     {"all", "0-3"},    {"N,2", "2-3"},
        {"2-3,9", "2-3,9"}, {"0-9:2/4", NULL}, {"2-9:2/4,7", "2-3,6-7"},
        {"1-2", NULL},      {"x", NULL},       {"2-,3", NULL},
    };
    char cmdline[64];

    put("", "/sys/devices/system/cpu/nohz_full");
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        snprintf(cmdline, sizeof cmdline, "rcu_nocbs=%s", rows[i].list);
        put(cmdline, "/proc/cmdline");
        doctor();
        says("rcu_nocbs", rows[i].says ? "ok" : "warning",
             rows[i].says ? rows[i].says : "are not included", rows[i].says ? NULL : "*");
    }
}

Test(app_doctor, command_line_by_grub)
{
    put("GRUB_CMDLINE_LINUX=\"\"", "/etc/default/grub");
    ask(&(struct nj_doctor_config){.root = scratch, .user = "nj", .lcores = "1"});
    says("isolcpus", "warning", "lcores 1 are not included",
         "echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX isolcpus=1 nohz_full=1 rcu_nocbs=1\"' | "
         "tee /etc/default/grub.d/nightjar-cpus.cfg\n"
         "update-grub\n"
         "# and reboot\n# (untested)\n");
    put("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX isolcpus=1 nohz_full=1 rcu_nocbs=1\"",
        "/etc/default/grub.d/nightjar-cpus.cfg");
    ask(&(struct nj_doctor_config){.root = scratch, .user = "nj", .lcores = "1"});
    says("isolcpus", "warning", "lcores 1 are not included",
         "update-grub\n# and reboot\n# (untested)\n");
}

Test(app_doctor, powersave_and_two_threads_of_a_core)
{
    put("1", "/sys/devices/system/cpu/smt/active");
    put("1,3", "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list");
    put("1,3", "/sys/devices/system/cpu/cpu3/topology/thread_siblings_list");
    put("powersave", "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor");
    cr_expect_eq(doctor(), 0);
    says("governor", "ok", "performance", NULL);
    says("smt", "ok", "on; each lcore is on a core of its own", NULL);
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = scratch, .user = "nj", .lcores = "1-3"}),
                 0);
    says("governor", "warning", "powersave on lcores 1:", "*");
    says("smt", "warning", "lcores 1 and 3 are threads of one core", "*");
    put("", "/sys/devices/system/cpu/isolated");
    doctor();
    says("lcores", "ok", "CPUs 1-2 of 0-3", NULL); /* one of each core */
}

Test(app_doctor, lcores_that_are_not_there)
{
    struct nj_doctor_config config = {.root = scratch, .user = "nj", .lcores = "3-4"};

    cr_expect_eq(ask(&config), 1);
    says("lcores", "error", "CPU 4 is not online", "nightjar --print-placement\n");
    config.lcores = "3-";
    cr_expect_eq(ask(&config), 2);
    cr_expect_str_eq(why, "--lcores 3-: expected 1 to 64 CPUs such as 2-5,8");
    put("0", "/sys/devices/system/cpu/online");
    put("", "/sys/devices/system/cpu/isolated");
    doctor();
    says("lcores", "warning", "no CPU is left", NULL);
}

/* The kernel has to run somewhere. */
Test(app_doctor, lcores_on_all_cpus)
{
    put("", "/sys/devices/system/cpu/isolated");
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = scratch, .user = "nj", .lcores = "0-3"}),
                 0);
    says("lcores", "warning", "CPUs 0-3 are all CPUs of the host: none is left for the kernel",
         "*");
    says("isolcpus", "warning", "lcores 0-3 are not included", NULL);
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = scratch, .user = "nj", .lcores = "1-5"}),
                 1);
    says("lcores", "error", "CPU 4-5 is not online", "*");
    says("isolcpus", "warning", "lcores 1-3 are not included", SET_CPUS);
}

/* --- users ---------------------------------------------------------------------------------- */

Test(app_doctor, little_memory_may_be_locked)
{
    put("nj - memlock 65536", "/etc/security/limits.d/nj.conf");
    cr_expect_eq(doctor(), 1);
    says("memlock", "error",
         "64MiB for nj by /etc/security/limits.d/nj.conf; vfio locks all memory",
         "echo nj - memlock unlimited | tee /etc/security/limits.d/nightjar.conf\n"
         "# remove the line from /etc/security/limits.d/nj.conf, which is read later\n"
         "# takes effect at the next login; a systemd unit needs LimitMEMLOCK=infinity in "
         "its [Service] instead\n");
    put("nj - memlock 2097152", "/etc/security/limits.d/nj.conf");
    cr_expect_eq(doctor(), 0);
    says("memlock", "ok", "2GiB for nj", NULL);
    take_away("/etc/security/limits.d/nj.conf");
    cr_expect_eq(doctor(), 1);
    says("memlock", "error", "not set for nj", "*");
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = scratch, .user = "root"}), 0);
    says("memlock", "ok", "root", NULL);
}

Test(app_doctor, lines_of_limits)
{
    static const struct {
        const char *text;
        bool enough;
    } rows[] = {
        {"* - memlock unlimited", true},
        {"* soft memlock -1", true},
        {"* hard memlock unlimited", false},
        {"@serving - memlock infinity", true},
        {"@other - memlock infinity", false},
        {"@nobody-knows-it - memlock infinity", false},
        {"other - memlock unlimited", false},
        {"#* - memlock unlimited", false},
        {"* - nofile unlimited", false},
        {"nj - memlock unlimited\n* - memlock 64\n@serving - memlock 64", true},
        {"nj - memlock unlimited\nnj soft memlock 64", false},
        {"* - memlock 64\n@serving - memlock unlimited", true},
        {":4242 - memlock unlimited", true},
        {":4241 - memlock unlimited", false},
        {"4000: - memlock unlimited", true},
        {"4243: - memlock unlimited", false},
        {"4000:4242 - memlock unlimited", true},
        {"4000:4241 - memlock unlimited", false},
        {": - memlock unlimited", false},
        {"* - memlock 64\n@:4300 - memlock unlimited", true},
        {"@:4301 - memlock unlimited", false},
        {"@4242:4243 - memlock unlimited", true},
        {"@4300: - memlock unlimited", false}, /* not the first group */
        {"* soft memlock unlimited\nnj hard memlock 64", false},
        {"* soft memlock unlimited\n* hard memlock unlimited", true},
        {"* soft memlock unlimited\n* hard memlock 64\nnj hard memlock unlimited", true},
        {"  # * - memlock unlimited", false},
    };

    take_away("/etc/security/limits.d/nj.conf");
    put("nj:x:4242:\nserving:x:4300:x,nj\nother:x:4301:x", "/etc/group");
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        put(rows[i].text, "/etc/security/limits.conf");
        cr_expect_eq(doctor(), !rows[i].enough, "row %zu: %s", i, said);
    }
}

/* For the calling user the limit of the process counts. */
Test(app_doctor, memory_that_we_may_lock)
{
    put("root:x:0:0::/:/bin/sh\nus:x:4242:4242::/:/bin/sh", "/etc/passwd");
    put("Max locked memory         8388608              8388608              bytes",
        "/proc/self/limits");
    if (getuid() != 0)
        return; /* only root can change the user */
    cr_assert_eq(chmod(scratch, 0755), 0);
    cr_assert_eq(seteuid(4242), 0);
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = scratch}), 1);
    says("memlock", "error", "8MiB for us of this process", "*");
    cr_expect_not_null(strstr(said, "prlimit --pid $$ --memlock=unlimited\n"));
}

Test(app_doctor, no_permissions)
{
    put_mode(0600, "/dev/vfio/12");
    put_mode(0755, "/dev/hugepages");
    put_mode(0600, "/dev/net/tun");
    cr_expect_eq(doctor(), 1);
    says("permission/dev/vfio/12", "error", "nj may not read and write (mode 0600",
         "chown nj /dev/vfio/12\n"
         "echo 'SUBSYSTEM==\"vfio\", KERNEL==\"12\", OWNER=\"nj\"' | tee -a "
         "/etc/udev/rules.d/60-nightjar.rules\n");
    says("permission/dev/hugepages", "error", "nj may not",
         "chown nj /dev/hugepages\n"
         "# at each boot; a unit of systemd: ExecStartPre=+chown nj /dev/hugepages\n");
    says("permission/dev/net/tun", "warning", "nj may not", "chmod 666 /dev/net/tun\n");
    says("permission/dev/vfio/vfio", "ok", "nj may", NULL);
    take_away("/dev/vfio/12");
    take_away("/dev/net/tun");
    cr_expect_eq(doctor(), 1);
    says("permission/dev/vfio/12", "error", "missing, although " BOUND, NULL);
    says("permission/dev/net/tun", "warning", "missing", "modprobe tun\n");
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = scratch, .user = "nobody-knows"}), 2);
    cr_expect_str_eq(why, "--user nobody-knows: there is no such user");
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = "/does/not/exist"}), 2);
    cr_expect_str_eq(why, "--sysroot /does/not/exist: there is no such folder");
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = "/bin/ls"}), 2);
    cr_expect_str_eq(why, "--sysroot /bin/ls: there is no such folder");
}

Test(app_doctor, output_that_cannot_be_written)
{
    struct nj_doctor_config config = {.root = scratch, .user = "nj"};
    FILE *full = fopen("/dev/full", "w");

    cr_assert_not_null(full);
    cr_expect_eq(nj__doctor_run(&config, full, why, sizeof why), 1);
    cr_expect_str_eq(why, "the output cannot be written: No space left on device");
    fclose(full);
}

/* The contents of a folder that the user may not search count as not accessible. */
Test(app_doctor, folders_above)
{
    put_mode(0700, "/dev/vfio");
    cr_expect_eq(doctor(), 1);
    says("permission/dev/vfio/vfio", "error", "nj may not search /dev/vfio",
         "chmod a+x /dev/vfio\n");
    says("permission/dev/vfio/12", "error", "nj may not search /dev/vfio", "chmod a+x /dev/vfio\n");
    put_mode(0701, "/dev/vfio");
    cr_expect_eq(doctor(), 0, "%s", said);
}

/* A mount's name is any, and is one word of a command. */
Test(app_doctor, mounts_with_strange_names)
{
    put("nodev /mnt/a\\040b';id\033 hugetlbfs rw,pagesize=2M 0 0", "/proc/mounts");
    put_folder(0755, "/mnt/a b';id\033");
    cr_expect_eq(doctor(), 1);
    cr_expect_null(strchr(said, '\033'));
    says("hugetlbfs", "ok", "/mnt/a b';id? (2MiB)", NULL);
    cr_expect_not_null(strstr(said, "error    permission/mnt/a b';id? "), "%s", said);
    cr_expect_not_null(strstr(said, "  chown nj '/mnt/a b'\\'';id?'\n"), "%s", said);
    put("nodev /mnt/a\\012\\134b hugetlbfs rw,pagesize=2M 0 0", "/proc/mounts");
    doctor();
    says("hugetlbfs", "ok", "/mnt/a\\012\\b (2MiB)", NULL);
}

/* A group's rights count where the file is the group's. */
Test(app_doctor, permission_of_a_group)
{
    if (getuid() != 0)
        return; /* only root can change the owner of a file */
    snprintf(path_text, sizeof path_text, "%s/dev/vfio/12", scratch);
    cr_assert_eq(chown(path_text, 0, 4300), 0);
    put_mode(0660, "/dev/vfio/12");
    cr_expect_eq(doctor(), 0, "%s", said);
    put_mode(0606, "/dev/vfio/12"); /* others may open it, the group may not */
    cr_expect_eq(doctor(), 1, "%s", said);
}
