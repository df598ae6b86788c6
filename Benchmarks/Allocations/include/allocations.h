#ifndef SEGDL_ALLOCATIONS_H
#define SEGDL_ALLOCATIONS_H

/// The number of allocations since the process began, on all threads.
long segdl_allocation_count(void);

#endif
