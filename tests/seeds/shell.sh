# Runs a shell block with what it takes for granted: bash shell.sh BLOCK.
#
# TESSERA_PYTHON is the interpreter, TESSERA_PACKAGES the folder with Tessera; HOME is an empty folder.
# - `pip install` puts Tessera where a document asks for torch, as a link to what was built; what
#   Tessera is not is left out by name. Nothing asks the network.
# - `nvidia-smi` is `tessera top --once`, which shows the same of the virtual GPU, too.
# Prompts ($, !, user@machine ... >) and the output below a prompt are not typed.
set -e
export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
python() { if [[ -n ${VIRTUAL_ENV:-} ]]; then command python "$@"; else "$TESSERA_PYTHON" "$@"; fi; }
tessera() { PYTHONPATH=$TESSERA_PACKAGES "$TESSERA_PYTHON" -m tessera "$@"; }
nvidia-smi() { tessera top --once; }
pip() {
  local word site
  site=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  [[ $1 == install ]]
  while shift; do
    case ${1:-} in
      torch) printf '%s\n' "$TESSERA_PACKAGES" "$TESSERA_PACKAGES/tessera/_alias" >"$site/tessera.pth" ;;
      torchvision | torchaudio) echo "$1 is not part of Tessera" ;;
      --index-url) shift ;;
    esac
  done
}
pip3() { pip "$@"; }

block=$1
case $block in
  *_install.sh)
    python -m venv --without-pip ~/venv-cuda
    source ~/venv-cuda/bin/activate ;;
  *_working.sh)
    # The document's loop, working beside: with deferral its results, which nobody reads, are not made.
    TESSERA_FUSE=0 PYTHONPATH=$TESSERA_PACKAGES "$TESSERA_PYTHON" -m tessera run \
      "$here/frame.py" 000_05_crunch.py --forever >/dev/null 2>&1 &
    worker=$!
    trap 'kill $worker 2>/dev/null || true' EXIT
    for _ in {1..40}; do  # until it is seen; from within a container it may never be
      sleep 0.25
      kill -0 $worker 2>/dev/null || break
      tessera top --once | grep -q " $worker " && break
    done ;;
esac
if grep -q '> nvidia-smi$' "$here/blocks/$block"; then
  code=$(sed -n '1s/.*> //p' "$here/blocks/$block")
else
  code=$(sed 's/^[$!]//' "$here/blocks/$block")
fi
eval "$code"
case $block in
  *_venv.sh) python -c 'import sys; print(sys.prefix != sys.base_prefix)'; command -v pip3 >/dev/null ;;
  *_install.sh) python -c 'import torch; print(torch.relu(torch.tensor([-1.0, 2.0])), torch.cuda.is_available())' ;;
  *_working.sh) echo "worker: $(basename "$TESSERA_PYTHON")" ;;
esac
