/* SPDX-License-Identifier: MIT
 *
 * See power.h. Source of the names: Documentation/ABI/testing/sysfs-class-power of Linux.
 */
#include "app/power.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* The first line of a file of a supply equals `value`. */
static bool says(const char *supply, const char *file, const char *value) {
    char path[512], line[64] = "";
    snprintf(path, sizeof path, "/sys/class/power_supply/%.200s/%s", supply, file);
    FILE *f = fopen(path, "re");
    bool got = f != NULL && fgets(line, sizeof line, f) != NULL;
    if (f != NULL) {
        fclose(f);
    }
    line[strcspn(line, "\n")] = '\0';
    return got && strcmp(line, value) == 0;
}

bool app_on_battery(void) {
    bool discharges = false;
    DIR *dir = opendir("/sys/class/power_supply");
    struct dirent *e;
    while (dir != NULL && (e = readdir(dir)) != NULL) {
        /* the battery of a mouse ("scope" Device) says nothing about the machine */
        discharges = discharges || (e->d_name[0] != '.' && says(e->d_name, "type", "Battery") &&
                                    !says(e->d_name, "scope", "Device") &&
                                    says(e->d_name, "status", "Discharging"));
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return discharges;
}
