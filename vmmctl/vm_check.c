/* SPDX-License-Identifier: ISC */
/*
 * Checks of requests.  Runs in vmm, before anything is made.
 */
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <linux/if.h>
#include <linux/if_tun.h>
#include <string.h>

#include "slot.h"
#include "vm_check.h"

int
vm_check_slot(uint32_t slot, uint32_t uid, struct fault *f)
{
	const struct m_parent_setup_vmm	*c = &vmm.cfg;

	if (c->uid_count <= SLOT_UIDS_RESERVED ||
	    slot >= c->uid_count - SLOT_UIDS_RESERVED ||
	    uid != slot_uid(c->uid_first, slot))
		return fault_set(f, E_INTERNAL,
		    "slot %u with uid %u is none of %u from %u", slot, uid,
		    c->uid_count, c->uid_first);
	return 0;
}

int
vm_check_mac(const char *mac)
{
	int	 i;

	for (i = 0; i < 17; i++) {
		if (mac[i] == '\0')
			return -1;
		if (i % 3 == 2 ? mac[i] != ':' :
		    strchr("0123456789abcdef", mac[i]) == NULL)
			return -1;
	}
	if (mac[17] != '\0' || strchr("02468ace", mac[1]) == NULL)
		return -1;
	return 0;
}

/* A tap of this slot, made the way QEMU needs it. */
static int
check_tap(int fd, uint32_t slot, struct fault *f)
{
	struct ifreq	 ifr;
	struct stat	 st;
	char		 name[TAP_NAME_MAX + 1];

	if (fstat(fd, &st) == -1 || !S_ISCHR(st.st_mode) ||
	    st.st_rdev != makedev(10, 200))
		return fault_set(f, E_NETWORK, "the descriptor is no tap");
	memset(&ifr, 0, sizeof(ifr));
	if (ioctl(fd, TUNGETIFF, &ifr) == -1)
		return fault_errno(f, E_NETWORK, "tap of slot %u", slot);
	slot_format_tap(vmm.cfg.tag, slot, name);
	ifr.ifr_name[IFNAMSIZ - 1] = '\0';
	if (strcmp(ifr.ifr_name, name) != 0)
		return fault_set(f, E_NETWORK, "tap %s is not slot %u's %s",
		    ifr.ifr_name, slot, name);
	if ((ifr.ifr_flags & IFF_TAP) == 0 ||
	    (ifr.ifr_flags & IFF_NO_PI) == 0 ||
	    (ifr.ifr_flags & IFF_VNET_HDR) == 0)
		return fault_set(f, E_NETWORK,
		    "tap %s lacks IFF_NO_PI or IFF_VNET_HDR", name);
	return 0;
}

int
vm_check_start(const struct m_parent_start_vm *b, int tap, struct fault *f)
{
	if (vm_check_slot(b->slot, b->uid, f) == -1)
		return -1;
	if (b->gid != b->uid)
		return fault_set(f, E_INTERNAL, "gid %u is not the slot's",
		    b->gid);
	if (b->generation == 0)
		return fault_set(f, E_INTERNAL, "generation 0");
	if (b->vcpu < 1 || b->vcpu > SBX_VCPU_MAX)
		return fault_set(f, E_OUT_OF_RANGE, "vcpu %u", b->vcpu);
	if (b->memory_mib < SBX_MEMORY_MIN_MIB ||
	    b->memory_mib > SBX_MEMORY_MAX_MIB)
		return fault_set(f, E_OUT_OF_RANGE, "memory_mib %u",
		    b->memory_mib);
	if (b->disk_mib < SBX_DISK_MIN_MIB || b->disk_mib > SBX_DISK_MAX_MIB)
		return fault_set(f, E_OUT_OF_RANGE, "disk_mib %u", b->disk_mib);
	if (b->kvm > 1 || (b->kvm && !vmm.kvm_node))
		return fault_set(f, E_START_FAILED,
		    "/dev/kvm cannot be opened");
	if (vm_check_mac(b->mac) == -1)
		return fault_set(f, E_INTERNAL, "malformed MAC");
	return check_tap(tap, b->slot, f);
}
