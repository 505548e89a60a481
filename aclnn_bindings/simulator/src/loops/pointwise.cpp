// Phase-1 rules and loops of pointwise rows: see pointwise.h.
#include "loops/pointwise.h"

namespace aclsim {
namespace {

struct Plan {
  aclDataType common;
  Loop loop;
};

int position(int8_t input) { return input < 0 ? ~input : input; }

// A host argument as a constant operand; it stays in the call, which outlives the run.
Operand constant(const Call& c, int i) {
  Operand op;
  const Arg& arg = c.args[i];
  switch (arg.kind) {
    case ArgKind::Scalar:
      op.data = arg.scalar->bytes;
      op.dtype = arg.scalar->dtype;
      break;
    case ArgKind::Float: op.data = &arg.number; op.dtype = ACL_DOUBLE; break;
    case ArgKind::Bool: op.data = &arg.flag; op.dtype = ACL_BOOL; break;
    default: op.data = &arg.integer; op.dtype = ACL_INT64; break;
  }
  op.rounded = op.dtype;
  return op;
}

// A promoting scalar becomes a value of the common dtype: integers wrap (uint8 tensor // -1 divides
// by 255, as torch has it), floats round where the row asks for it.
void settle_scalar(Call& c, const PointwiseRule& rule, int i, aclDataType common) {
  Scalar& s = *c.args[i].scalar;
  if (s.dtype == common) return;
  if (domain_of(common) == Domain::Integer) {
    store_one(s.integer(), s.bytes, common, 0);
  } else if (rule.rounds_scalars && domain_of(common) == Domain::Float) {
    store_one(s.real(), s.bytes, common, 0);
  } else {
    return;
  }
  s.dtype = common;
}

// In place nothing may be lost that self's dtype has no form for: int.add_(float) is refused. A
// function of self alone takes what its document lists, integers too.
aclnnStatus expect_kept(const Call& c, const PointwiseRule& rule, aclDataType common) {
  const aclDataType to = c.tensor(rule.out).dtype;
  bool in_place = false;
  for (int k = 0; k < rule.count; ++k) in_place = in_place || rule.inputs[k] == rule.out;
  const bool lost = (is_float(common) || is_complex(common)) && domain_of(to) == Domain::Integer;
  if (!in_place || !lost || rule.count == 1) return expect_castable(c, common, rule.out);
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "Result type %s can't be cast to the desired output type %s of %s.",
                dtype_name(common), dtype_name(to), c.name(rule.out));
}

aclnnStatus refuse_promotion(const Call& c, const PointwiseRule& rule) {
  const int a = position(rule.inputs[0]), b = position(rule.inputs[rule.count > 1 ? 1 : 0]);
  const auto name = [&](int i) {
    return dtype_name(c.args[i].kind == ArgKind::Tensor ? c.tensor(i).dtype : c.scalar(i).dtype);
  };
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s dtype %s and %s dtype %s can't promote for this op.",
                c.name(a), name(a), c.name(b), name(b));
}

}  // namespace

aclDataType common_dtype(const Call& c, const PointwiseRule& rule) {
  aclDataType common = ACL_DT_UNDEFINED;
  bool first = true;
  for (int k = 0; k < rule.count; ++k) {
    const int i = rule.inputs[k];
    if (i < 0 || c.args[i].kind != ArgKind::Tensor) continue;
    const aclDataType d = c.tensor(i).dtype;
    common = first ? d : promote(common, d);
    first = false;
    if (common == ACL_DT_UNDEFINED) return common;
  }
  for (int k = 0; k < rule.count; ++k) {
    const int i = rule.inputs[k];
    if (i < 0 || c.args[i].kind != ArgKind::Scalar) continue;
    common = first ? c.scalar(i).dtype : promote_scalar(common, c.scalar(i).dtype);
    first = false;
  }
  if (!rule.bodies.i64 && domain_of(common) == Domain::Integer) {
    common = rule.result == Result::Bool ? ACL_DOUBLE : ACL_FLOAT;
  }
  return common;
}

namespace {

aclnnStatus expect_inputs(const Call& c, const PointwiseRule& rule) {
  for (int k = 0; k < rule.count; ++k) {
    const int i = position(rule.inputs[k]);
    const bool handle = c.args[i].kind == ArgKind::Tensor || c.args[i].kind == ArgKind::Scalar;
    if (!handle || !c.null(i)) continue;
    return c.fail(ACLNN_ERR_PARAM_NULLPTR, "Parameter %s is null.", c.name(i));
  }
  return ACLNN_SUCCESS;
}

aclnnStatus expect_broadcast(const Call& c, const PointwiseRule& rule) {
  Shape shape;
  for (int k = 0; k < rule.count; ++k) {
    const int i = position(rule.inputs[k]);
    if (c.args[i].kind != ArgKind::Tensor || broadcast(shape, c.tensor(i))) continue;
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s can't broadcast with %s.",
                  shape_text(c.tensor(i)), c.name(i), shape_text(shape.dims, shape.rank));
  }
  return expect_shape(c, rule.out, shape);
}

}  // namespace

aclnnStatus check_pointwise(Call& c, const PointwiseRule& rule) {
  ACL_RETURN_IF_FAILED(expect_inputs(c, rule));
  const aclDataType common = common_dtype(c, rule);
  const bool complex = common != ACL_DT_UNDEFINED && is_complex(common);
  if (common == ACL_DT_UNDEFINED || common == ACL_COMPLEX32 || (complex && !rule.bodies.complex)) {
    return refuse_promotion(c, rule);
  }
  if (rule.result == Result::Promoted) ACL_RETURN_IF_FAILED(expect_kept(c, rule, common));
  ACL_RETURN_IF_FAILED(expect_broadcast(c, rule));
  Plan& plan = c.make<Plan>();
  plan.common = common;
  plan.loop = loop_over(c.tensor(rule.out));
  for (int k = 0; k < rule.count; ++k) {
    const int i = position(rule.inputs[k]);
    if (c.args[i].kind == ArgKind::Tensor) {
      plan.loop.add(c.tensor(i));
      plan.loop.operands[k + 1].rounded = common;
    } else {
      if (rule.inputs[k] >= 0 && c.args[i].kind == ArgKind::Scalar) {
        settle_scalar(c, rule, i, common);
      }
      plan.loop.operands[plan.loop.count++] = constant(c, i);
    }
  }
  plan.loop.coalesce();
  return ACLNN_SUCCESS;
}

aclError run_pointwise(Call& c, const PointwiseRule& rule) {
  const Plan& plan = c.get<Plan>();
  Loop loop = plan.loop;  // launches of one executor may run at once
  loop.operands[0].data = c.tensor(rule.out).data;
  for (int k = 0; k < rule.count; ++k) {
    const int i = position(rule.inputs[k]);
    if (c.args[i].kind == ArgKind::Tensor) loop.operands[k + 1].data = c.tensor(i).data;
  }
  run_bodies(loop, plan.common, rule.bodies);
  return ACL_SUCCESS;
}

void run_bodies(Loop& loop, aclDataType common, const Bodies& bodies) {
  switch (domain_of(common)) {
    case Domain::Float: run_loop<float>(loop, bodies.f32); break;
    case Domain::Double: run_loop<double>(loop, bodies.f64); break;
    case Domain::Integer: run_loop<int64_t>(loop, bodies.i64); break;
    case Domain::Complex: run_loop<c128>(loop, bodies.complex); break;
  }
}

}  // namespace aclsim
