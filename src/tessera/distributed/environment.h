// What launchers tell a process about its place in a job: torchrun and `tessera run` (RANK, ...),
// mpirun (OMPI_COMM_WORLD_RANK, PMI_RANK) and Slurm (SLURM_PROCID).
#pragma once
#include <map>
#include <string>

namespace tessera::distributed {

// RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT as far as they are set,
// or follow from what mpirun or Slurm set.
std::map<std::string, std::string> launch_environment();

}  // namespace tessera::distributed
