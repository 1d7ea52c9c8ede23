#include "widgets/timeline/overlay.h"

#include "widgets/timeline/timeline_view.h"

namespace stagewright {

Overlay::~Overlay()
{
    if (m_view != nullptr) m_view->remove(this);
}

ViewState& Overlay::state() const { return *m_view->viewState(); }

const TimelineScene& Overlay::scene() const { return m_view->scene(); }

void Overlay::update() const
{
    if (m_view != nullptr) m_view->update();
}

} // namespace stagewright
