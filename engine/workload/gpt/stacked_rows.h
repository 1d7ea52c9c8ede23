// The rows of several parts in one matrix, for the weight gradient over several microbatches. Of a single part the
// matrix is the part's own buffer; otherwise it is workspace that the rows are copied to, each part's freed as soon as
// it is there.
#pragma once

#include <span>
#include <utility>

#include "engine/workload/gpt/layers.h"

namespace stagewright::layers {

template <typename Saved>
class RowStacker {
public:
    RowStacker(const StageContext& context, std::span<const Pending<Saved>> parts) : m_context(context), m_parts(parts)
    {
        for (const Pending<Saved>& part : parts) m_rows += part.shape.rows();
    }
    int rows() const { return m_rows; }

    // (rows, width); the parts no longer have it.
    Buffer take(Buffer Saved::*which, int width) const
    {
        if (m_parts.size() == 1) return std::move(m_parts.front().saved->*which);
        Buffer all = borrow(width);
        float* to = all.data();
        for (const Pending<Saved>& part : m_parts) {
            const Buffer own = std::move(part.saved->*which);
            m_context.allocator.memory().copy(to, own.data(), own.size() * sizeof(float));
            to += own.size();
        }
        return all;
    }

    // normal · gamma + beta (rows, hidden); the parts no longer have `which`.
    Buffer norm(Buffer Saved::*which, const NormParameters& norm) const
    {
        const auto hidden = static_cast<std::size_t>(m_context.model.hidden);
        Buffer all = borrow(m_context.model.hidden);
        Elements to = elementsIn(all);
        for (const Pending<Saved>& part : m_parts) {
            const Buffer own = std::move(part.saved->*which);
            m_context.math.scaleShift(part.shape.rows(), m_context.model.hidden, elementsIn(own), norm.gamma.used,
                                      norm.beta.used, to);
            to = m_context.math.at(to, static_cast<std::size_t>(part.shape.rows()) * hidden);
        }
        return all;
    }

private:
    Buffer borrow(int width) const
    {
        return m_context.borrow(static_cast<std::size_t>(m_rows) * static_cast<std::size_t>(width),
                                m_parts.front().shape.microbatch);
    }

    const StageContext& m_context;
    std::span<const Pending<Saved>> m_parts;
    int m_rows = 0;
};

} // namespace stagewright::layers
