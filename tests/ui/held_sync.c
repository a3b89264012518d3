/* SPDX-License-Identifier: MIT
 *
 * A disk that takes its time, to be loaded before the C library: as long as the file named by
 * CHINWAG_HOLD is there no sync returns, and CHINWAG_HELD is made by the first that waits.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for_disk(void) {
    const char *hold = getenv("CHINWAG_HOLD"), *held = getenv("CHINWAG_HELD");
    while (hold != NULL && access(hold, F_OK) == 0) {
        int fd = held != NULL ? open(held, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
        if (fd >= 0) {
            close(fd);
        }
        usleep(10000);
    }
}

__attribute__((visibility("default"))) int fsync(int fd) {
    wait_for_disk();
    return (int)syscall(SYS_fsync, fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd) {
    wait_for_disk();
    return (int)syscall(SYS_fdatasync, fd);
}
