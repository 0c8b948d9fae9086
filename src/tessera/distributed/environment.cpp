#include "tessera/distributed/environment.h"

#include <cstdlib>
#include <initializer_list>

namespace tessera::distributed {

namespace {

std::string first_set(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value && *value) return value;
  return "";
}

// The first host of a Slurm list: "node[03-07],other" is node03.
std::string first_host(const std::string& list) {
  size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  size_t end = list.find_first_of(",-]", bracket + 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

// The same on all ranks of a job, different in most jobs.
std::string port_for(const std::string& job) {
  unsigned hash = 5381;
  for (unsigned char c : job) hash = hash * 33 + c;
  return std::to_string(15000 + hash % 15000);
}

}  // namespace

std::map<std::string, std::string> launch_environment() {
  std::map<std::string, std::string> out;
  auto put = [&](const char* name, std::string value) {
    if (!value.empty()) out[name] = std::move(value);
  };
  // In a shell of Slurm's some of its variables are set too; srun alone sets this one.
  const bool srun = std::getenv("SLURM_STEP_ID") != nullptr;
  put("RANK", first_set({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}));
  put("WORLD_SIZE", first_set({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}));
  if (srun && out["RANK"].empty()) put("RANK", first_set({"SLURM_PROCID"}));
  if (srun && out["WORLD_SIZE"].empty())
    put("WORLD_SIZE", first_set({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}));
  put("LOCAL_RANK",
      first_set({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}));
  put("LOCAL_WORLD_SIZE", first_set({"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                     "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}));
  std::string address = first_set({"MASTER_ADDR"}), port = first_set({"MASTER_PORT"});
  const bool torchrun = !first_set({"RANK"}).empty();
  if (!torchrun && !out["WORLD_SIZE"].empty()) {
    if (address.empty()) {
      std::string nodes =
          first_set({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
      bool one_machine = out["LOCAL_WORLD_SIZE"] == out["WORLD_SIZE"] ||
                         first_set({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}) == "1";
      if (one_machine)
        address = "127.0.0.1";
      else if (!nodes.empty())
        address = first_host(nodes);
    }
    std::string job = first_set({"SLURM_JOB_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
    if (port.empty() && !job.empty()) port = port_for(job + first_set({"SLURM_STEP_ID"}));
  }
  put("MASTER_ADDR", address);
  put("MASTER_PORT", port);
  for (auto at = out.begin(); at != out.end();) at = at->second.empty() ? out.erase(at) : ++at;
  return out;
}

}  // namespace tessera::distributed
