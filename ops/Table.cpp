#include "latile/table.h"
#include <algorithm>

using latile::Operator;
void linear_attn(Operator&);
void simple_gla(Operator&);
void gated_delta_rule(Operator&);
void retention(Operator&);
void lightning_attn(Operator&);
void gla(Operator&);
void rwkv6(Operator&);
void gsa(Operator&);
void abc(Operator&);
void hgrn(Operator&);
void rwkv4(Operator&);
void delta_rule(Operator&);
void comba(Operator&);
void gated_delta_product(Operator&);
void kda(Operator&);
void gdn2(Operator&);
void precond_gated_delta_rule(Operator&);
void precond_kda(Operator&);
void dplr(Operator&);
void iplr(Operator&);
void rwkv7(Operator&);
void gated_oja_rule(Operator&);
void based(Operator&);
void rebased(Operator&);
void mesa_net(Operator&);
void ttt(Operator&);
void titans(Operator&);
void l2norm(Operator&);
void rms_norm(Operator&);
void causal_conv1d(Operator&);
void token_shift(Operator&);
void log_linear_attn(Operator&);
void atk(Operator&);

namespace latile {
namespace {

std::vector<OperatorRow>& rows() {
  static std::vector<OperatorRow> table{
      {"linear_attn", ::linear_attn, "linear attention, optionally normalised by the sum of keys", 0.001, 0.001},
      {"simple_gla", ::simple_gla, "linear attention with a decay for each head, per token or constant", 0.004, 0.005},
      {"gated_delta_rule", ::gated_delta_rule, "the delta rule with a decay for each head", 0.005, 0.005},
      {"retention", ::retention, "linear attention with a constant decay for each head", 0.004, 0.005},
      {"lightning_attn", ::lightning_attn,
       "linear attention with a constant decay for each head that weakens with the layer", 0.005, 0.005},
      {"gla", ::gla, "linear attention with a decay for each key channel, optionally for each value channel", 0.004,
       0.005},
      {"rwkv6", ::rwkv6, "a decay for each key channel, output before update, a bonus for the token itself", 0.004,
       0.005},
      {"gsa", ::gsa, "two memories of slots with a decay for each slot and a softmax between them", 0.004, 0.005},
      {"abc", ::abc, "slots weighted by the softmax over time of what enters them", 0.005, 0.005},
      {"hgrn", ::hgrn, "an element-wise linear recurrence", 0.005, 0.005},
      {"rwkv4", ::rwkv4, "an exponentially weighted mean for each channel, with a bonus for the token itself", 0.005,
       0.005},
      {"delta_rule", ::delta_rule, "linear attention that first erases what its key finds", 0.005, 0.005},
      {"comba", ::comba, "the gated delta rule with a key of its own for what it erases, read before the decay", 0.005,
       0.005},
      {"gated_delta_product", ::gated_delta_product, "several steps of the delta rule for each token", 0.005, 0.005},
      {"kda", ::kda, "the delta rule with a decay for each key channel", 0.005, 0.005},
      {"gdn2", ::gdn2, "kda with a gate for each channel of what is erased and of what is written", 0.005, 0.005},
      {"precond_gated_delta_rule", ::precond_gated_delta_rule,
       "the gated delta rule that writes with a preconditioned key", 0.005, 0.005},
      {"precond_kda", ::precond_kda, "kda that writes with a preconditioned key", 0.005, 0.005},
      {"dplr", ::dplr, "a transition that is diagonal plus low rank", 0.007, 0.008},
      {"iplr", ::iplr, "a transition that is the identity plus low rank", 0.007, 0.008},
      {"rwkv7", ::rwkv7, "a decay for each key channel, and a removal key with its own strength", 0.002, 0.002},
      {"gated_oja_rule", ::gated_oja_rule, "the delta rule on keys, with a decay for each value channel", 0.005, 0.005},
      {"based", ::based, "linear attention with the weights 1 + s + s²/2", 0.005, 0.005},
      {"rebased", ::rebased, "linear attention with the weights s²", 0.005, 0.005},
      {"mesa_net", ::mesa_net, "least squares over all tokens with a decay, solved at each query", 0.006, 0.008},
      {"ttt", ::ttt, "a linear model trained at test time, one gradient step a mini-batch", 0.005, 0.005},
      {"titans", ::titans, "a linear memory trained at test time, with momentum and forgetting", 0.006, 0.005},
      {"l2norm", ::l2norm, "rows of unit length", 0.001, 0.001},
      {"rms_norm", ::rms_norm, "root-mean-square normalisation with weight, gate and residual", 0.001, 0.001},
      {"causal_conv1d", ::causal_conv1d, "a short causal convolution of each channel", 0.001, 0.001},
      {"log_linear_attn", ::log_linear_attn,
       "linear attention whose weights depend on the level of a tree over positions", 0.004, 0.005},
      {"token_shift", ::token_shift, "each row's difference from the one before", 0.001, 0.001},
      {"atk", ::atk, "keys preconditioned by a decaying sum of their squares", 0.005, 0.005},
  };
  return table;
}

}  // namespace

const std::vector<OperatorRow>& operators() { return rows(); }

const OperatorRow* find_operator(std::string_view name) {
  auto it = std::find_if(rows().begin(), rows().end(), [&](const OperatorRow& r) { return r.name == name; });
  return it == rows().end() ? nullptr : &*it;
}

bool register_operator(const OperatorRow& row) {
  if (find_operator(row.name)) return false;
  rows().push_back(row);
  return true;
}

}  // namespace latile
