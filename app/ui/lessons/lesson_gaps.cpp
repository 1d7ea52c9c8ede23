// Why a gap in the learner's order exists: cause, experiment, and a button that tries it.
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "traces/analysis/explain_gap.h"
#include "widgets/background.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/literals.h"
#include "widgets/style.h"
#include "widgets/timeline/timeline_view.h"

#include <algorithm>

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QVBoxLayout>

namespace stagewright {

QWidget* LessonController::gapCard() const { return m_gapCard; }

void LessonController::hideGap() { delete m_gapCard.data(); }

// Beside the gap where it covers least of the gap and of the arrows of its chain.
static QPoint placeBeside(const TimelineView* view, const std::vector<GapLink>& chain, const TimelinePanel& panel,
                          double from, double to, const std::optional<QRectF>& row, QSize card)
{
    std::vector<QRectF> kept;
    if (row) kept.emplace_back(from, row->top(), std::max(1.0, to - from), row->height());
    QPointF last = row ? QPointF(to, row->center().y()) : QPointF();
    for (const GapLink& link : chain) {
        const auto rect = link.span == noSpan || link.span >= panel.timeline->spans().size()
                              ? std::nullopt
                              : view->rectOf({0, link.span});
        if (!rect) continue;
        kept.push_back(*rect);
        kept.push_back(QRectF(last, rect->center()).normalized()); // where the arrow lies
        last = rect->center();
    }
    const double left = gutterFor(view->width()), right = view->width() - card.width() - 8.0;
    const double low = view->height() - card.height() - 4.0, high = rulerHeight + 4;
    QPointF best(std::clamp(from, left, std::max(left, right)),
                 std::clamp(row ? row->bottom() + 6 : 60.0, high, std::max(high, low)));
    double least = -1;
    for (const double y : {row ? row->bottom() + 6 : 60.0, low, row ? row->top() - card.height() - 6 : high, high})
        for (const double x : {from, to + 8, from - card.width() - 8, right, left}) {
            const QRectF place(
                QPointF(std::clamp(x, left, std::max(left, right)), std::clamp(y, high, std::max(high, low))),
                QSizeF(card));
            double covered = 0;
            for (const QRectF& rect : kept) {
                const QRectF both = rect.united(QRectF(rect.topLeft(), QSizeF(1, 1))).intersected(place);
                covered += both.width() * both.height();
            }
            if (least >= 0 && covered >= least) continue;
            least = covered;
            best = place.topLeft();
        }
    return best.toPoint();
}

void LessonController::explainGap(int rank, Nanos time)
{
    hideGap();
    if (m_workspace.views().timeline->panels().empty()) return;
    const auto panel = m_workspace.views().timeline->panels().front();
    const std::shared_ptr<const Timeline> timeline = panel->timeline;
    struct Found {
        std::optional<Gap> gap;
        GapExplanation explanation;
    };
    BubbleOptions options;
    if (m_session && m_session->canvas().settings.cap())
        options.memoryCap =
            static_cast<Bytes>(*m_session->canvas().settings.cap() * static_cast<double>(timeline->memoryUnit()));
    inBackground(
        this,
        [timeline, rank, moment = time + panel->origin, step = std::max(0, panel->step), options]() -> Found {
            Found found;
            const StepContext context(*timeline, step, options);
            const auto& report = context.bubbles();
            if (!report) return found;
            for (const Gap& gap : report->gaps)
                if (gap.rank == rank && moment >= gap.start && moment < gap.end) found.gap = gap;
            if (found.gap) found.explanation = GapExplainer(context).explain(*found.gap);
            return found;
        },
        [this, timeline, panel, rank](const Found& found) {
            if (!found.gap || m_workspace.views().timeline->panels().empty() ||
                m_workspace.views().timeline->panels().front() != panel)
                return;
            const Units units{timeline->timeUnit(), timeline->memoryUnit()};
            auto* card = new QFrame(m_workspace.views().timeline);
            m_gapCard = card;
            card->setObjectName(u"card"_s);
            card->setAccessibleName(u"Why this gap"_s);
            auto* layout = new QVBoxLayout(card);
            layout->setContentsMargins(13, 10, 13, 11);
            layout->setSpacing(6);
            layout->addWidget(makeLabel(u"%1, %2 on rank %3"_s
                                            .arg(qs(std::string(titleOf(*timeline, *found.gap))),
                                                 durationText(found.gap->end - found.gap->start, units))
                                            .arg(rank),
                                        "title", card));
            auto* words = makeLabel(qs(found.explanation.sentence), "value", card, true);
            words->setWordWrap(true);
            layout->addWidget(words);
            // an experiment that changes nothing does not explain the wait
            if (const auto& experiment = found.explanation.experiment;
                experiment && experiment->after != experiment->before) {
                auto* line =
                    makeLabel(u"%1: %2 → %3"_s.arg(qs(experiment->change), durationText(experiment->before, units),
                                                   durationText(experiment->after, units)),
                              "secondary", card, true);
                line->setWordWrap(true);
                layout->addWidget(line);
            }
            auto* buttons = new QHBoxLayout;
            const bool moves = m_workspace.shown().mode() == Shown::Mode::Edit && found.gap->hasReadyOp &&
                               found.gap->next != noSpan && m_workspace.feature<OrderEditing>()->moves();
            if (moves) {
                auto* go = new QPushButton(u"Try it"_s, card);
                go->setToolTip(u"Moves %1 here; can be undone"_s.arg(qs(toText(found.gap->readyOp))));
                connect(go, &QPushButton::clicked, this, [this, gap = *found.gap] {
                    ScheduleEditor* editor = &m_workspace.feature<OrderEditing>()->editor();
                    const auto& row = editor->schedule().order[static_cast<std::size_t>(gap.rank)];
                    const auto from = std::find(row.begin(), row.end(), gap.readyOp);
                    const OpPosition to = editor->positionOf(gap.next);
                    hideGap();
                    if (from != row.end() && to.valid())
                        editor->move({gap.rank, static_cast<int>(from - row.begin())}, to.position);
                });
                buttons->addWidget(go);
            }
            auto* close = new QPushButton(u"Close"_s, card);
            connect(close, &QPushButton::clicked, this,
                    [this] { QTimer::singleShot(0, this, &LessonController::hideGap); });
            buttons->addWidget(close);
            buttons->addStretch(1);
            layout->addLayout(buttons);
            card->setFixedWidth(340);
            card->adjustSize();
            const Axis axis = m_workspace.views().timeline->scene().axis;
            const auto row = m_workspace.views().timeline->scene().rowRect(0, rank);
            card->move(placeBeside(m_workspace.views().timeline, found.explanation.chain, *panel,
                                   axis.toX(panel->toAxis(found.gap->start)), axis.toX(panel->toAxis(found.gap->end)),
                                   row, card->size()));
            m_workspace.views().timeline->input().hideCard(); // it says the same
            card->show();
            card->raise();
        });
}

} // namespace stagewright
