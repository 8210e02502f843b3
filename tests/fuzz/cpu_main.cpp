#include "fuzz/machines.h"

fuzz::Machines fuzz::machinesHere() { return cpuMachines(); }
